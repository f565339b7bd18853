"""What a worker's choice of queues leaves out, for its log and for ``--check``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from headrace.app import App
from headrace.events import QueueNotServed, QueueWithoutTasks
from headrace.nearest import nearest
from headrace.storage.base import Inspector

MOST_QUEUES = 100
"""Most queues of others that are looked at."""

MOST_TASKS = 10
"""Most names of tasks in one event."""


class Coverage(msgspec.Struct, frozen=True):
    """The queues of a worker beside those of its app's tasks.

    Attributes:
        without_tasks: those that it serves and no task has as its own, each with the name that may
            have been meant, or "".
        left_out: those of tasks that it doesn't serve, with the tasks' names.
    """

    without_tasks: dict[str, str]
    left_out: dict[str, list[str]]


def coverage(app: App[Any], queues: Iterable[str]) -> Coverage:
    """Compare the queues that a worker serves with those of its app's tasks."""
    served = set(queues)
    tasks: dict[str, list[str]] = {}
    for name in sorted(app.tasks):
        tasks.setdefault(app.tasks[name].settings.queue, []).append(name)
    return Coverage(
        {queue: nearest(queue, tasks) for queue in sorted(served - tasks.keys())},
        {queue: tasks[queue] for queue in sorted(tasks.keys() - served)},
    )


def without_tasks(worker: str, found: Coverage) -> list[QueueWithoutTasks]:
    """Return a warning for each queue that no task has."""
    return [
        QueueWithoutTasks(worker=worker, queue=queue, perhaps=meant)
        for queue, meant in found.without_tasks.items()
    ]


async def not_served(
    worker: str, left_out: Mapping[str, list[str]], storage: Inspector
) -> list[QueueNotServed]:
    """Return a warning for each queue of tasks that no live worker serves now.

    Raises:
        StorageError: it could not be asked.
    """
    found = []
    for queue, tasks in list(left_out.items())[:MOST_QUEUES]:
        if not (await storage.stats(queue)).workers:
            found.append(QueueNotServed(worker=worker, queue=queue, tasks=tasks[:MOST_TASKS]))
    return found

"""What a worker's choice of queues and lanes leaves out, for its log and for ``--check``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from headrace.app import App
from headrace.events import LaneNotServed, QueueNotServed, QueueWithoutTasks
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
        lanes: those of tasks of its queues that it doesn't serve, by queue and lane, likewise.
    """

    without_tasks: dict[str, str]
    left_out: dict[str, list[str]]
    lanes: dict[tuple[str, str], list[str]] = {}


def coverage(app: App[Any], queues: Iterable[str], lanes: Collection[str]) -> Coverage:
    """Compare the queues and lanes that a worker serves with those of its app's tasks."""
    served = set(queues)
    tasks: dict[str, list[str]] = {}
    left: dict[tuple[str, str], list[str]] = {}
    for name in sorted(app.tasks):
        settings = app.tasks[name].settings
        tasks.setdefault(settings.queue, []).append(name)
        if settings.queue in served and settings.lane not in lanes:
            left.setdefault((settings.queue, settings.lane), []).append(name)
    return Coverage(
        {queue: nearest(queue, tasks) for queue in sorted(served - tasks.keys())},
        {queue: tasks[queue] for queue in sorted(tasks.keys() - served)},
        left,
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


async def lanes_not_served(
    worker: str, left_out: Mapping[tuple[str, str], list[str]], storage: Inspector
) -> list[LaneNotServed]:
    """Return a warning for each lane of a queue that tasks need and no live worker serves now.

    Raises:
        StorageError: it could not be asked.
    """
    found = []
    for (queue, lane), tasks in list(left_out.items())[:MOST_QUEUES]:
        others = await storage.workers(queue)
        if not any(info.slots_of(lane) for info in others if not info.is_condemned):
            found.append(
                LaneNotServed(worker=worker, queue=queue, lane=lane, tasks=tasks[:MOST_TASKS])
            )
    return found

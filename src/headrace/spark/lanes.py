"""In which lanes tasks run, as the workers of their queues say."""

from __future__ import annotations

from functools import partial

from headrace.job import DEFAULT_LANE
from headrace.storage.steps import at_once
from headrace.sync.asking import BlockingAsker


class TaskLanes:
    """Asks once for each queue; where no worker knows a task it is in the default lane.

    A job that leaves its lane to the storage would not be plain, and take twice the time.

    Args:
        asker: of the storage.
    """

    def __init__(self, asker: BlockingAsker) -> None:
        self._asker = asker
        self._known: dict[str, dict[str, str]] = {}

    def __call__(self, queue: str, task: str) -> str:
        """Return the lane of a task.

        Raises:
            StorageError: the storage is not answered.
        """
        known = self._known.get(queue)
        if known is None:
            known = self._known[queue] = self._asked(queue)
        return known.get(task, DEFAULT_LANE)

    def _asked(self, queue: str) -> dict[str, str]:
        workers = at_once(self._asker.ask(partial(self._asker.storage.workers, queue)))
        return {task: lane for worker in workers for task, lane in worker.tasks.items()}

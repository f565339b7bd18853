"""Jobs of many ids: how they stand, and a wait until all of them have ended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import msgspec
import pyarrow as pa

from headrace.errors import WaitTimeout
from headrace.spark.progress import Draw
from headrace.spark.storages import storage_of
from headrace.storage.limits import BATCH_LIMIT
from headrace.storage.steps import at_once
from headrace.storage.values import End
from headrace.sync.asking import BlockingAsker
from headrace.waiting import is_end

RETRY_S = 60.0
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0


class Jobs(msgspec.Struct, frozen=True):
    """Where jobs are, and which column has their ids; goes to executors.

    Attributes:
        queue: their queue.
        url: of the storage; "": as ``HEADRACE_URL`` says in each process.
        tenant: whose queue.
        id_column: has their ids.
    """

    queue: str
    url: str
    tenant: str
    id_column: str


def asker_of(jobs: Jobs) -> BlockingAsker:
    """Return what asks this process's storage about jobs."""
    return BlockingAsker(storage_of(jobs.url, jobs.tenant), retry_for_s=RETRY_S)


def ends_of(asker: BlockingAsker, jobs: Jobs, ids: Sequence[str]) -> list[End]:
    """Return how jobs of up to 500 ids stand."""
    return at_once(asker.ask(partial(asker.storage.outcomes, jobs.queue, ids)))


class Wait:
    """Waits for the jobs of some ids, 500 after the other: the last to end may be any of them.

    Args:
        jobs: where they are.
        ids: theirs.
        draw: told how many have ended, and of how many.
    """

    def __init__(self, jobs: Jobs, ids: pa.ChunkedArray, draw: Draw) -> None:
        self._jobs = jobs
        self._asker = asker_of(jobs)
        self._ids = ids
        self._draw = draw
        self._started_at = time.monotonic()

    def run(self, until: float | None) -> None:
        """Block until they have ended.

        Raises:
            WaitTimeout: it is later than that.
        """
        for begin in range(0, len(self._ids), BATCH_LIMIT):
            left = self._ids[begin : begin + BATCH_LIMIT].to_pylist()
            end = begin + len(left)
            pause_s = FIRST_PAUSE_S
            while left := self._unended(left):
                self._draw(end - len(left), len(self._ids))
                if until is not None:
                    if time.monotonic() >= until:
                        raise self._late(len(left) + self._unended_from(end))
                    pause_s = min(pause_s, max(0.0, until - time.monotonic()))
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            self._draw(end, len(self._ids))

    def _unended_from(self, begin: int) -> int:
        return sum(
            len(self._unended(self._ids[first : first + BATCH_LIMIT].to_pylist()))
            for first in range(begin, len(self._ids), BATCH_LIMIT)
        )

    def _unended(self, ids: Sequence[str]) -> list[str]:
        return [end.id for end in ends_of(self._asker, self._jobs, ids) if not is_end(end)]

    def _late(self, left: int) -> WaitTimeout:
        jobs, waited_s = self._jobs, time.monotonic() - self._started_at
        return WaitTimeout(
            f"{left:,} of {len(self._ids):,} jobs of queue {jobs.queue!r} have not ended after "
            f"{waited_s:.3g} s: see that workers serve it, and wait again",
            job_id="",
            queue=jobs.queue,
        )

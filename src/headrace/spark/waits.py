"""Jobs of many ids: how they stand, and waits until all of them are there and have ended."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from functools import partial

import msgspec
import pyarrow as pa

from headrace.errors import WaitTimeout, WriteNotFound
from headrace.plain import shown
from headrace.spark.progress import Draw, of_write
from headrace.spark.storages import storage_of
from headrace.storage.base import check_writes_in_bulk
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


class Patience:
    """How long somebody waits, and how often to look meanwhile.

    Args:
        timeout_ms: the longest, None for as long as it takes.
    """

    def __init__(self, timeout_ms: int | None) -> None:
        self._started_at = time.monotonic()
        self._until = math.inf if timeout_ms is None else self._started_at + timeout_ms / 1000

    @property
    def waited(self) -> str:
        """How long it has been, for a message."""
        return f"{time.monotonic() - self._started_at:.3g} s"

    def looks(self) -> Iterator[None]:
        """Yield for each look: at once, then after longer and longer pauses, and at the end."""
        pause_s = FIRST_PAUSE_S
        yield
        while (left_s := self._until - time.monotonic()) > 0:
            time.sleep(min(pause_s, left_s))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            yield


def wait_published(jobs: Jobs, write_id: str, patience: Patience, draw: Draw) -> None:
    """Block until all that an atomic write has committed is stored, by whoever publishes it.

    Args:
        jobs: where they will be.
        write_id: the write.
        patience: how long to wait.
        draw: told how many are stored, and of how many.

    Raises:
        WriteNotFound: the queue knows no such write.
        WaitTimeout: it was not published in time.
        StorageRefused: the storage has no bulk writes.
    """
    asker = asker_of(jobs)
    check_writes_in_bulk(asker.storage)
    show, left = of_write(draw), ""
    for _ in patience.looks():
        info = at_once(asker.ask(partial(asker.storage.read_write, jobs.queue, write_id)))
        if info is None:
            raise WriteNotFound(
                f"write {shown(write_id)} is not known in queue {jobs.queue!r}: it was never "
                "committed there, or its keep_write is over; if it is that old, leave write_id out"
            )
        show(info)
        if info.is_published:
            return
        left = f"{info.jobs - info.added:,} of {info.jobs:,} jobs"
    raise WaitTimeout(
        f"{left} of write {shown(write_id)} are not stored in queue {jobs.queue!r} after "
        f"{patience.waited}: see that workers serve it and that the storage has room, and wait "
        "again",
        job_id="",
        queue=jobs.queue,
    )


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

    def run(self, patience: Patience) -> None:
        """Block until they have ended.

        Raises:
            WaitTimeout: they have not in time.
        """
        for begin in range(0, len(self._ids), BATCH_LIMIT):
            left = self._ids[begin : begin + BATCH_LIMIT].to_pylist()
            end = begin + len(left)
            for _ in patience.looks():
                left = self._unended(left)
                self._draw(end - len(left), len(self._ids))
                if not left:
                    break
            else:
                raise self._late(len(left) + self._unended_from(end), patience)

    def _unended_from(self, begin: int) -> int:
        return sum(
            len(self._unended(self._ids[first : first + BATCH_LIMIT].to_pylist()))
            for first in range(begin, len(self._ids), BATCH_LIMIT)
        )

    def _unended(self, ids: Sequence[str]) -> list[str]:
        return [end.id for end in ends_of(self._asker, self._jobs, ids) if not is_end(end)]

    def _late(self, left: int, patience: Patience) -> WaitTimeout:
        return WaitTimeout(
            f"{left:,} of {len(self._ids):,} jobs of queue {self._jobs.queue!r} have not ended "
            f"after {patience.waited}: see that workers serve it, and wait again",
            job_id="",
            queue=self._jobs.queue,
        )

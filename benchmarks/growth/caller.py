"""Direct calls of the storage's verbs, as one producer and one worker would make them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from benchmarks.growth.workload import GrowthLoad
from headrace.admit import admit
from headrace.app import clients_of
from headrace.job import DEFAULT_KEEP_MS, DEFAULT_LANE, ClaimedJob, ErrorInfo, Job, new_job_id
from headrace.outcome import Completed, Outcome
from headrace.storage import values
from headrace.storage.base import Storage
from headrace.storage.incarnations import IncarnationInfo
from headrace.storage.limits import BATCH_LIMIT
from headrace.storage.values import CallId, Settlement

DAY_MS = 24 * 3_600_000
COMPLETED = Completed(b"1", DEFAULT_KEEP_MS, DEFAULT_KEEP_MS)


class Caller:
    """A client and an incarnation on the first queue of a load, with the numbers of their calls.

    Attributes:
        repaired: how far a repair has come, "" before and after it.
    """

    def __init__(self, load: GrowthLoad, storage: Storage) -> None:
        self._load = load
        self._storage = storage
        self._queue = load.queues[0]
        self._name = new_job_id()
        self._number = 0
        self.repaired = ""

    def _call(self) -> CallId:
        self._number += 1
        return CallId(self._name, self._number)

    async def register(self) -> None:
        """Make the incarnation known."""
        info = IncarnationInfo(
            incarnation=self._name,
            name="bench",
            host="localhost",
            pid=1,
            version="0",
            concurrency=BATCH_LIMIT,
            lease_ms=3_600_000,
            registered_ms=0,
        )
        await self._storage.register(self._queue, info)

    async def retire(self) -> None:
        """Put back what is claimed, and forget the incarnation."""
        while await self._storage.retire(self._queue, self._name):
            pass

    async def enqueue(self, jobs: Sequence[Job]) -> None:
        """Enqueue one batch."""
        await self._storage.enqueue(self._queue, [admit(job) for job in jobs], call=self._call())

    @property
    def has_bulk_writes(self) -> bool:
        """Whether the code that is measured has bulk writes."""
        return hasattr(self._storage, "stage")

    async def stage(self, jobs: Sequence[Job]) -> None:
        """Stage one batch and commit it, as a write of its own."""
        name, ready = new_job_id(), [admit(job) for job in jobs]
        length = await self._storage.stage(self._queue, name, name, ready, before=0, ttl_ms=DAY_MS)
        stage = values.StageInfo(name, length, len(jobs))
        await self._storage.commit(self._queue, name, [stage], keep_ms=DAY_MS)

    async def publish(self) -> None:
        """Publish one batch, which is all that there is."""
        assert await self._storage.publish(self._queue) == 0

    async def claim(self, count: int) -> list[ClaimedJob]:
        """Claim one batch of so many jobs."""
        call = self._call()
        nonce = f"{self._name}/{call.number:016}"
        reply = await self._storage.claim(
            self._queue, call=call, nonce=nonce, slots={DEFAULT_LANE: count}
        )
        assert len(reply.jobs) == count
        return reply.jobs

    async def settle(self, jobs: Sequence[ClaimedJob], outcome: Outcome = COMPLETED) -> None:
        """Record one outcome for a batch."""
        batch = [Settlement(job.id, job.claim, 0, outcome) for job in jobs]
        assert await self._storage.settle(self._queue, batch, call=self._call()) == [
            True for _ in batch
        ]

    async def reap(self, error: ErrorInfo) -> None:
        """Condemn the incarnation, and take some of what it has claimed back."""
        assert await self._storage.reap(self._queue, self._name, seen=0, error=error) is not None

    async def repair(self) -> None:
        """Go on with a full repair of the queue; ``repaired`` is the cursor, "" at the end."""
        done = await self._storage.repair(
            self._queue, cursor=self.repaired, is_full=not self.repaired
        )
        assert done.mended == 0
        self.repaired = done.cursor

    async def run(self, count: int, outcome: Outcome = COMPLETED) -> None:
        """Bring so many jobs to their end, in batches, each batch from enqueue to settle."""
        for first in range(0, count, BATCH_LIMIT):
            size = min(BATCH_LIMIT, count - first)
            await self.enqueue([self._load.noop.job(x=n) for n in range(size)])
            await self.settle(await self.claim(size), outcome)


@asynccontextmanager
async def calling(load: GrowthLoad) -> AsyncIterator[Caller]:
    """A caller that is registered, and retired at the end."""
    storage = clients_of(load.app).open_storage()
    caller = Caller(load, storage)
    try:
        await caller.register()
        yield caller
        await caller.retire()
    finally:
        await storage.aclose()

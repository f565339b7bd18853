"""The storage of a kit: a database in memory of its own, on the kit's clock."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence

from headrace.errors import StorageUnavailable
from headrace.job import ADDED, CancelOutcome, EnqueueOutcome, JobState, Verdict
from headrace.request import JobRequest
from headrace.storage.blocking import BlockingStorage
from headrace.storage.schedules import Occurrence
from headrace.storage.sqlite.engine.engine import Engine
from headrace.storage.sqlite.engine.engines import attach, detach_now, discard
from headrace.storage.sqlite.engine.location import place_of
from headrace.storage.sqlite.engine.step import Clock
from headrace.storage.sqlite.storage import BlockingSqliteStorage, SqliteStorage
from headrace.storage.values import CallId

Stored = Callable[[JobRequest, Occurrence | None], None]
Stopping = Callable[[str, list[str]], None]

_STORED = (*ADDED, EnqueueOutcome.UPDATED)


class NotedStorage(SqliteStorage):
    """The embedded storage, and word of what goes in.

    Args:
        url: of the database.
        tenant: whose queues.
        clock: the kit's.
        stored: called with every job that was stored or changed what is, and the occurrence of a
            schedule that brought it in, if one did; duplicates are not.
        stopping: called with a queue and the ids of active jobs that are asked to stop.
    """

    def __init__(
        self, url: str, *, tenant: str, clock: Clock, stored: Stored, stopping: Stopping
    ) -> None:
        super().__init__(url, clock=clock)
        self.tenant: str = tenant
        self._stored = stored
        self._stopping = stopping

    async def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[Verdict]:
        """Store jobs, and note them."""
        outcomes = await super().enqueue(queue, jobs, call=call)
        self._note([(job, None) for job in jobs], outcomes)
        return outcomes

    async def fire(
        self, queue: str, occurrences: Sequence[Occurrence], *, until_ms: int
    ) -> list[EnqueueOutcome] | None:
        """Store the jobs of occurrences, and note them."""
        outcomes = await super().fire(queue, occurrences, until_ms=until_ms)
        if outcomes is not None:
            self._note([(occurrence.job, occurrence) for occurrence in occurrences], outcomes)
        return outcomes

    async def publish(self, queue: str) -> int:
        """Publish a piece of what is committed, and note its jobs."""
        published = await self.publish_piece(queue)
        self._note([(job, None) for job in published.jobs], published.outcomes)
        return published.stages_left

    def _note(
        self,
        jobs: Sequence[tuple[JobRequest, Occurrence | None]],
        outcomes: Sequence[Verdict],
    ) -> None:
        for (job, occurrence), outcome in zip(jobs, outcomes, strict=True):
            if outcome in _STORED:
                self._stored(job, occurrence)

    async def cancel(
        self,
        queue: str,
        job_ids: Sequence[str],
        *,
        only_next: bool = False,
        states: Collection[JobState] = (),
    ) -> list[CancelOutcome]:
        """Cancel jobs; an active one hears of it now and not at a beat."""
        outcomes = await super().cancel(queue, job_ids, only_next=only_next, states=states)
        pairs = zip(job_ids, outcomes, strict=True)
        self._stopping(queue, [i for i, outcome in pairs if outcome is CancelOutcome.REQUESTED])
        return outcomes


class KitStorage(NotedStorage):
    """A database in memory, which stays open while the kit lasts, whoever closes it.

    It needs no event loop to be closed. Args are those of `NotedStorage`, but for the URL.
    """

    def __init__(self, *, tenant: str, clock: Clock, stored: Stored, stopping: Stopping) -> None:
        url = f"memory://kit-{secrets.token_hex(8)}"
        super().__init__(url, tenant=tenant, clock=clock, stored=stored, stopping=stopping)
        self.url: str = url
        self._shared: Engine | None = attach(place_of(url))

    def engine(self) -> Engine:
        """Return the engine, which `close` gives up."""
        if self._shared is None:
            raise StorageUnavailable("the kit that this storage belonged to has ended")
        return self._shared

    def blocking(self) -> BlockingStorage:
        """Return the same storage for code without an event loop."""
        return BlockingKitStorage(self, stored=self._stored, stopping=self._stopping)

    def wake(self, queue: str) -> None:
        """Let a worker that waits for this queue claim now."""
        self.engine().tokens.leave((self.tenant, queue), None)

    async def aclose(self) -> None:
        """Leave it open: the kit closes it."""

    def close(self) -> None:
        """Throw everything away."""
        engine, self._shared = self._shared, None
        if engine is not None:
            detach_now(engine)
            discard(engine.place)


class BlockingKitStorage(NotedStorage, BlockingSqliteStorage):
    """The storage of a kit for code without an event loop; it uses the kit's engine.

    Args:
        kit: the storage of the kit, which closes it.
        stored: as for `NotedStorage`.
        stopping: as for `NotedStorage`.
    """

    def __init__(self, kit: KitStorage, *, stored: Stored, stopping: Stopping) -> None:
        super().__init__(
            kit.url, tenant=kit.tenant, clock=kit.clock, stored=stored, stopping=stopping
        )
        self._kit = kit

    def engine(self) -> Engine:
        """Return the kit's engine, while the kit lasts."""
        return self._kit.engine()

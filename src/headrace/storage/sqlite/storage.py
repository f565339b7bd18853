"""The storage on SQLite: one method a verb, one call of the writer each."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TypeVar

from headrace.job import (
    CancelOutcome,
    Claim,
    EnqueueOutcome,
    ErrorInfo,
    Job,
    JobRecord,
    JobState,
)
from headrace.storage.base import Beater, Channel, Waiter
from headrace.storage.sqlite.blocking import SqliteBeater, SqliteChannel, SqliteWaiter
from headrace.storage.sqlite.engine.engine import Engine, attach, detach
from headrace.storage.sqlite.engine.location import place_of
from headrace.storage.sqlite.engine.step import Clock
from headrace.storage.sqlite.engine.writer import Work
from headrace.storage.sqlite.verbs import (
    cancel,
    enqueue,
    incarnations,
    inspector,
    listing,
    maintenance,
    output,
    steering,
    watch,
)
from headrace.storage.sqlite.verbs.claim import claim
from headrace.storage.sqlite.verbs.doctor import diagnose
from headrace.storage.sqlite.verbs.settle import settle
from headrace.storage.values import (
    OUTPUT_PAGE_LIMIT,
    Beat,
    CallId,
    ClaimReply,
    End,
    EventPage,
    Finding,
    IncarnationInfo,
    OutputPage,
    Page,
    QueueSettings,
    QueueStats,
    Repaired,
    Report,
    Settlement,
    read_output_cursor,
)

T = TypeVar("T")


def wall_clock() -> int:
    """Return this host's time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class SqliteStorage:
    """Every verb on one database.

    Args:
        url: ``memory://``, ``memory://name`` or ``file:///absolute/directory``.
        tenant: whose queues.
        allow_eviction: nothing is ever evicted here.
        clock: another one for tests.

    Raises:
        InvalidOption: the URL can't be read.
    """

    def __init__(
        self,
        url: str,
        *,
        tenant: str,
        allow_eviction: bool = False,
        clock: Clock = wall_clock,
    ) -> None:
        self.tenant = tenant
        self._place = place_of(url)
        self._clock = clock
        self._engine: Engine | None = None

    def engine(self) -> Engine:
        """Return this process's share of the database; `aclose` gives it up."""
        if self._engine is None:
            self._engine = attach(self._place)
        return self._engine

    def _name(self, queue: str) -> tuple[str, str]:
        return self.tenant, queue

    async def _write(self, work: Work[T]) -> T:
        return await self.engine().writer.run(work, self._clock)

    async def _add(self, work: Work[T]) -> T:
        return await self.engine().writer.run(work, self._clock, grows=True)

    async def _pass(self, work: Work[T], *, grows: bool = False) -> T:
        """Read, or write what a power loss may undo: nothing promised to a caller rests on it."""
        return await self.engine().writer.run(work, self._clock, is_durable=False, grows=grows)

    # Producer

    async def enqueue(
        self, queue: str, jobs: Sequence[Job], *, call: CallId
    ) -> list[EnqueueOutcome]:
        return await self._add(lambda s: enqueue.enqueue(s, self._name(queue), jobs, call))

    async def cancel(self, queue: str, job_ids: Sequence[str]) -> list[CancelOutcome]:
        return await self._write(lambda s: cancel.cancel(s, self._name(queue), job_ids))

    async def watch(self, queue: str, job_ids: Sequence[str], *, channel: str) -> list[End]:
        return await self._pass(lambda s: watch.watch(s, self._name(queue), job_ids, channel))

    def open_channel(self) -> Channel:
        return SqliteChannel(self.engine(), self._clock)

    # Consumer

    async def register(self, queue: str, worker: IncarnationInfo) -> None:
        await self._pass(lambda s: incarnations.register(s, self._name(queue), worker))

    async def claim(
        self, queue: str, *, call: CallId, nonce: str, slots: Mapping[str, int]
    ) -> ClaimReply:
        # A claim that a power loss undoes took its worker along: the job just waits again.
        return await self._pass(lambda s: claim(s, self._name(queue), call, nonce, slots))

    async def settle(
        self, queue: str, settlements: Sequence[Settlement], *, call: CallId
    ) -> list[bool] | None:
        return await self._write(lambda s: settle(s, self._name(queue), settlements, call))

    async def put_back(
        self, queue: str, incarnation: str, jobs: Sequence[tuple[str, Claim]]
    ) -> None:
        await self._write(lambda s: incarnations.put_back(s, self._name(queue), jobs))

    async def report(self, queue: str, reports: Sequence[Report]) -> list[bool]:
        name = self._name(queue)
        return await self._pass(lambda s: output.report(s, name, reports), grows=True)

    async def held(self, queue: str, incarnation: str) -> list[tuple[str, Claim]]:
        return await self._pass(lambda s: incarnations.held(s, self._name(queue), incarnation))

    async def retire(self, queue: str, incarnation: str) -> int:
        return await self._write(lambda s: incarnations.retire(s, self._name(queue), incarnation))

    def open_waiter(self, queue: str, incarnation: str, lane: str) -> Waiter:
        return SqliteWaiter(
            self.engine(), self._name(queue), lane, self._clock, claim=partial(self.claim, queue)
        )

    def open_beater(self, *, timeout_s: float) -> Beater:
        return SqliteBeater(attach(self._place), self.tenant, self._clock, timeout_s=timeout_s)

    # Maintenance

    async def beats(self, queue: str) -> dict[str, Beat]:
        return await self._pass(lambda s: maintenance.beats(s, self._name(queue)))

    async def reap(
        self, queue: str, incarnation: str, *, seen: int, error: ErrorInfo
    ) -> int | None:
        return await self._write(
            lambda s: maintenance.reap(s, self._name(queue), incarnation, seen, error)
        )

    async def forget(self, queue: str, incarnation: str) -> bool:
        return await self._write(lambda s: maintenance.forget(s, self._name(queue), incarnation))

    async def prune(self, queue: str, *, cursor: str = "") -> str:
        return await self._pass(lambda s: maintenance.prune(s, self._name(queue)))

    async def repair(
        self,
        queue: str,
        *,
        cursor: str = "",
        lanes: Collection[str] = (),
        is_full: bool = False,
    ) -> Repaired:
        # No row is lost but by hand: nothing to look for at every sweep.
        if not is_full:
            return Repaired("", 0)
        return Repaired("", await self._write(lambda s: maintenance.recount(s, self._name(queue))))

    # Inspector

    async def queues(self) -> list[str]:
        return await self._pass(lambda s: inspector.queues(s, self.tenant))

    async def get(self, queue: str, job_id: str) -> JobRecord | None:
        return await self._pass(lambda s: inspector.get(s, self._name(queue), job_id))

    async def output(
        self, queue: str, job_id: str, *, after: str = "", limit: int = OUTPUT_PAGE_LIMIT
    ) -> OutputPage:
        name, seen = self._name(queue), read_output_cursor(after)
        return await self._pass(lambda s: output.read(s, name, job_id, seen, limit))

    async def list_jobs(
        self, queue: str, state: JobState, *, cursor: str = "", limit: int = 50
    ) -> Page:
        after = listing.read_cursor(state, cursor)
        return await self._pass(
            lambda s: listing.list_jobs(s, self._name(queue), state, after, limit)
        )

    async def stats(self, queue: str) -> QueueStats:
        return await self._pass(lambda s: inspector.stats(s, self._name(queue)))

    async def workers(self, queue: str) -> list[IncarnationInfo]:
        return await self._pass(lambda s: inspector.workers(s, self._name(queue)))

    async def events(self, queue: str, *, after: str = "0", limit: int = 100) -> EventPage:
        seen = inspector.event_number(after)
        return await self._pass(lambda s: inspector.events(s, self._name(queue), seen, limit))

    # Admin

    async def pause(self, queue: str) -> None:
        await self._write(lambda s: steering.pause(s, self._name(queue)))

    async def resume(self, queue: str) -> None:
        await self._write(lambda s: steering.resume(s, self._name(queue)))

    async def configure(self, queue: str, settings: QueueSettings) -> None:
        await self._write(lambda s: steering.configure(s, self._name(queue), settings))

    async def redrive(self, queue: str, job_ids: Sequence[str]) -> int:
        return await self._add(lambda s: steering.redrive(s, self._name(queue), job_ids))

    async def purge(self, queue: str, state: JobState, job_ids: Sequence[str]) -> int:
        return await self._write(lambda s: steering.purge(s, self._name(queue), state, job_ids))

    # Doctor

    async def check(self) -> None:
        await self._pass(lambda _: None)

    async def diagnose(self) -> list[Finding]:
        return await self._pass(lambda s: diagnose(s, self._place))

    async def tidy(self) -> list[str]:
        return []

    async def aclose(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            await detach(engine)

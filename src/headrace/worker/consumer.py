"""Serves one queue: holds one incarnation after another until it is told to stop."""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

import anyio

from headrace.backoff import Backoff
from headrace.errors import (
    ReplyLost,
    StorageError,
    StorageFault,
    StorageRefused,
    StorageUnavailable,
)
from headrace.events import Emit
from headrace.guard import Guard
from headrace.job import new_job_id
from headrace.repeat import repeat_until_answered
from headrace.storage.base import Storage
from headrace.storage.incarnations import IncarnationInfo
from headrace.worker.allowance import Allowance
from headrace.worker.execute import Executor
from headrace.worker.fetch import Fetcher
from headrace.worker.incarnation import Incarnation
from headrace.worker.liveness import Liveness
from headrace.worker.outage import Outage
from headrace.worker.slots import Slots
from headrace.worker.sweep import Sweeper

LAST_WORDS_S = 3.0


class QueueConsumer:
    """One queue of a worker.

    Args:
        storage: where the queue is.
        queue: its name.
        info: what the worker says of itself; each incarnation adds its id.
        executor: runs attempts.
        lanes: the slots of the whole worker, by lane.
        liveness: beats for its incarnations.
        grace_s: how long running jobs may go on after `close`.
        sweep_s: time between looks for dead workers.
        emit: told what happens.
        guard: keeps its loops alive.
        outage: the worker's, told of claims that go unanswered.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        queue: str,
        info: IncarnationInfo,
        executor: Executor,
        lanes: Mapping[str, Slots],
        liveness: Liveness,
        grace_s: float,
        sweep_s: float,
        emit: Emit,
        guard: Guard,
        outage: Outage,
    ) -> None:
        self.queue: str = queue
        self.put_back: int = 0
        self.has_made_last_claim: anyio.Event = anyio.Event()
        self._storage = storage
        self._info = info
        self._executor = executor
        self._lanes = lanes
        self._liveness = liveness
        self._grace_s = grace_s
        self._sweep_s = sweep_s
        self._emit = emit
        self._outage = outage
        self._guard = guard
        self._allowance = Allowance(
            sum(slots.total for slots in lanes.values()), lease_s=info.lease_ms / 1000
        )
        self._is_closing = anyio.Event()
        self._is_quiet = False
        self._has_grace_ended = False
        self._incarnation: Incarnation | None = None
        self._fetchers: list[Fetcher] = []
        self._ended_before = 0

    @property
    def is_consuming(self) -> bool:
        """Whether the last claim of each lane was answered."""
        return bool(self._fetchers) and all(fetcher.is_consuming for fetcher in self._fetchers)

    @property
    def active(self) -> int:
        """How many attempts run; may be asked in any thread."""
        incarnation = self._incarnation
        return 0 if incarnation is None else len(incarnation.attempts)

    @property
    def ended(self) -> int:
        """How many attempts have ended."""
        return self._ended_before + (0 if self._incarnation is None else self._incarnation.ended)

    @property
    def has_nothing(self) -> bool:
        """Whether nothing runs, and no lane has had a job since what ran here may have brought one.

        An attempt may enqueue some, and the first sweep publishes what was committed and left.
        """
        incarnation = self._incarnation
        return (
            incarnation is not None
            and incarnation.is_idle
            and all(fetcher.empty_at > incarnation.jobs_came_at for fetcher in self._fetchers)
        )

    def look_again(self) -> None:
        """If nothing runs any more, have the lanes look for jobs that what ran has brought."""
        incarnation = self._incarnation
        if incarnation is not None and incarnation.is_idle and incarnation.has_published:
            for fetcher in self._fetchers:
                if fetcher.empty_at <= incarnation.jobs_came_at:
                    fetcher.look()

    def quiet(self) -> None:
        """Claim no more, but go on running and beating."""
        self._is_quiet = True
        for fetcher in self._fetchers:
            fetcher.close()

    def close(self) -> None:
        """Claim no more, give running jobs the grace, then put back the rest."""
        self._is_closing.set()
        for fetcher in self._fetchers:
            fetcher.close()

    def end_grace(self) -> None:
        """End the grace now."""
        self._has_grace_ended = True
        if self._incarnation is not None:
            self._incarnation.end_grace()

    async def run(self) -> None:
        """Hold one incarnation after another until `close`."""
        while not self._is_closing.is_set():
            incarnation = Incarnation(
                self._storage,
                queue=self.queue,
                incarnation=new_job_id(),
                lease_s=self._info.lease_ms / 1000,
                executor=self._executor,
                lanes=self._lanes,
                allowance=self._allowance,
                emit=self._emit,
                outage=self._outage,
            )
            if not await self._register(incarnation):
                return
            self._liveness.add(incarnation.lease)
            self._incarnation = incarnation
            try:
                await self._hold(incarnation)
            finally:
                self._liveness.remove(incarnation.lease)
                self._ended_before += incarnation.ended
                self._incarnation = None
                self._fetchers = []

    async def _register(self, incarnation: Incarnation) -> bool:
        """Make the incarnation known, however long that takes; False: the worker was stopped."""

        async def register() -> bool:
            await incarnation.register(self._info)
            self._allowance.begin()
            return True

        return bool(await repeat_until_answered(register, is_over=self._is_closing.is_set))

    async def _hold(self, incarnation: Incarnation) -> None:
        """Run one incarnation to its end: stopped or fenced."""
        self._fetchers = [Fetcher(incarnation, lane) for lane in incarnation.lanes]
        if self._is_quiet or self._is_closing.is_set():
            for fetcher in self._fetchers:
                fetcher.close()  # said before this incarnation was there
        sweeper = Sweeper(incarnation, interval_s=self._sweep_s)
        async with anyio.create_task_group() as group:
            keep = self._guard.keep
            group.start_soon(keep, "settle", incarnation.settler.run)
            group.start_soon(keep, "report", incarnation.reports.run)
            group.start_soon(keep, "sweep", partial(_sweep_forever, sweeper))
            group.start_soon(keep, "fence", incarnation.lease.watch)
            try:
                async with anyio.create_task_group() as lanes:
                    for fetcher in self._fetchers:
                        lanes.start_soon(keep, "fetch", fetcher.run)
                if not incarnation.lease.is_gone.is_set():
                    self.has_made_last_claim.set()
                    await self._is_closing.wait()
                    await incarnation.finish(0.0 if self._has_grace_ended else self._grace_s)
                else:
                    await self._reconnect(incarnation)
            finally:
                # Also when the caller cancels `run`: claimed jobs must not wait for their lease.
                with anyio.CancelScope(shield=True):
                    await self._wind_up(incarnation)
            group.cancel_scope.cancel()

    async def _reconnect(self, incarnation: Incarnation) -> None:
        """Write a fenced incarnation's last outcomes and hand its jobs back, or wait for `close`.

        After an outage the storage still knows the incarnation, and nobody is charged for it. That
        must be written before the others take it for dead, so the storage is asked until it has:
        one that refuses writes may well be read. One that can't be used any more ends the worker,
        as it does at the start.
        """
        await incarnation.stop()
        async with anyio.create_task_group() as group:
            group.start_soon(_cancel_when, self._is_closing, group.cancel_scope)
            backoff = Backoff()
            while not incarnation.lease.is_condemned:
                await incarnation.settler.drain()
                try:
                    await incarnation.storage.check()
                    await incarnation.retire()
                    break
                except (StorageRefused, StorageFault):
                    raise
                except StorageError:
                    await anyio.sleep(min(backoff.next_s(), self._info.lease_ms / 3000))
            group.cancel_scope.cancel()

    async def _wind_up(self, incarnation: Incarnation) -> None:
        """Hand back what still runs, record what has ended, and forget the incarnation."""
        await incarnation.stop()
        with suppress(StorageError), anyio.move_on_after(LAST_WORDS_S):
            with suppress(StorageError):
                self.put_back += await incarnation.put_back()
            await incarnation.record()
            await incarnation.retire()


async def _cancel_when(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def _sweep_forever(sweeper: Sweeper) -> None:
    while True:
        try:
            next_s = await sweeper.sweep_once()
        except (StorageUnavailable, ReplyLost):
            next_s = 1.0
        # A little early or late, so that workers don't sweep in step.
        await anyio.sleep(next_s * random.uniform(0.9, 1.0))  # noqa: S311

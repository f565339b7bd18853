"""One start of a worker on one queue: what it has claimed, until it ends or is fenced.

When the storage has forgotten it, or its beats go unanswered for too long, it stops its own
attempts, since others may be given them; the worker then starts anew as another one.
"""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

import anyio
import msgspec

from headrace.events import AttemptStarted, Emit, QueueFenced
from headrace.job import ClaimedJob
from headrace.outcome import Outcome
from headrace.storage.base import Storage
from headrace.storage.batches import moved
from headrace.storage.incarnations import ClaimReply, FreeSlots, IncarnationInfo, SlotsAsked
from headrace.storage.values import CallId
from headrace.worker.allowance import Allowance
from headrace.worker.attempt import Attempt, Done, Follower, StopReason
from headrace.worker.liveness import Lease
from headrace.worker.outage import Outage
from headrace.worker.reports import Reports
from headrace.worker.settle import Settler
from headrace.worker.slots import Slot, Slots
from headrace.worker.strikes import KnownStrikes

STOP_S = 5.0
"""How long handlers may take to end once they were cancelled at shutdown."""


class ClaimTurn:
    """Numbers the claims of an incarnation, one on its way at a time, whatever the lane.

    The storage remembers the last one only, to answer a repetition. ``async with`` waits for the
    turn and holds it: the call may be repeated meanwhile.

    Attributes:
        nonce: of the claim on its way, "" without one.
        asked: how many jobs it asks for.
    """

    def __init__(self, incarnation: str) -> None:
        self._incarnation = incarnation
        self._number = 0
        self._lock = asyncio.Lock()
        self.nonce: str = ""
        self.asked: int = 0

    async def __aenter__(self) -> CallId:
        await self._lock.acquire()
        self._number += 1
        self.nonce = f"{self._incarnation}/{secrets.token_hex(8)}"
        return CallId(self._incarnation, self._number)

    async def __aexit__(self, *_: object) -> None:
        self.nonce = ""
        self.asked = 0
        self._lock.release()


class AttemptRunner(Protocol):
    """Runs attempts, as an `Executor` does."""

    def start(
        self,
        job: ClaimedJob,
        done: Done,
        *,
        slot: Slot | None = None,
        follower: Follower | None = None,
        strikes: KnownStrikes | None = None,
    ) -> Attempt:
        """Start an attempt; ``done`` is called once with its outcome, however it ends."""


class Incarnation:
    """One start of a worker on one queue: what fetching, settling, beating and sweeping share.

    Args:
        storage: where the queue is.
        queue: its name.
        incarnation: its id, never used before.
        lease_s: silence after which others take its jobs.
        executor: runs attempts.
        lanes: the slots of the whole worker, by lane.
        emit: told what happens.
        allowance: how many jobs it may hold, default as many as there are slots.
        outage: told of claims that go unanswered, default one of its own.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        queue: str,
        incarnation: str,
        lease_s: float,
        executor: AttemptRunner,
        lanes: Mapping[str, Slots],
        emit: Emit,
        allowance: Allowance | None = None,
        outage: Outage | None = None,
    ) -> None:
        self.storage = storage
        self.queue = queue
        self.id = incarnation
        self.lanes = lanes
        self._free = {lane: slots.release for lane, slots in lanes.items()}
        self.allowance: Allowance = allowance or Allowance(0, lease_s=lease_s)
        self.emit = emit
        self.outage: Outage = outage or Outage(emit)
        self.attempts: dict[str, Attempt] = {}
        self.lease: Lease = Lease(
            queue=queue,
            incarnation=incarnation,
            lease_s=lease_s,
            on_fence=self._on_fence,
            on_cancel=self._on_cancel,
        )
        self.ended: int = 0
        self.ended_at: float = self.lease.acked_at
        self._published_at = math.inf
        self._strikes: KnownStrikes | None = None
        self.claims: ClaimTurn = ClaimTurn(incarnation)
        self._watchers: list[Callable[[], None]] = []
        self._executor = executor
        self._is_quiet = asyncio.Event()
        self._unfinished: set[str] = set()
        self._stopped: list[Attempt] = []
        self.reports: Reports = Reports(storage, queue=queue)
        self.settler: Settler = Settler(
            storage,
            queue=queue,
            incarnation=incarnation,
            emit=emit,
            on_gone=self.lease.condemn,
        )

    def on_change(self, call: Callable[[], None]) -> None:
        """Call this when it is fenced, when nothing runs any more, and when it may hold more."""
        self._watchers.append(call)

    async def register(self, info: IncarnationInfo) -> None:
        """Make it known, with what its worker says of itself."""
        sent_at = time.monotonic()
        await self.storage.register(self.queue, msgspec.structs.replace(info, incarnation=self.id))
        self.lease.acked_at = sent_at

    def claim(self, call: CallId, lane: str, count: int) -> Awaitable[ClaimReply]:
        """Claim in a turn of `claims`, which the caller holds; it may be repeated."""
        return self.storage.claim(
            self.queue, call=call, nonce=self.claims.nonce, slots=self.asked(lane, count)
        )

    def asked(self, lane: str, count: int) -> SlotsAsked:
        """Return what a claim says of so many free slots of a lane."""
        return {lane: FreeSlots(count, self.lanes[lane].total)}

    @property
    def held(self) -> int:
        """How many slots its attempts hold."""
        return sum(attempt.job.slots for attempt in self.attempts.values())

    def knows_strikes(self, version: int) -> bool:
        """Whether what a claim has brought is held against this version of strikes; 0: none."""
        return version == (0 if self._strikes is None else self._strikes.version)

    async def meet_strikes(self, version: int) -> bool:
        """See that what a claim has brought is held against this version of strikes, or a newer.

        Returns:
            True, for who repeats it until it is answered.
        """
        if version == 0:
            self._strikes = None
        else:
            found = await self.storage.strikes(self.queue)
            self._strikes = KnownStrikes.of(found.version, found.strikes)
        return True

    def start(self, job: ClaimedJob, lane: str) -> None:
        """Start an attempt in the slots of a lane that the caller took for it."""
        slot = Slot(lane, self._free[lane], count=job.slots)
        self.attempts[job.id] = self._executor.start(
            job, self._ended, slot=slot, follower=self.reports, strikes=self._strikes
        )
        self.emit(
            AttemptStarted(
                job_id=job.id,
                task=job.task,
                queue=job.queue,
                start=job.claim.epoch,
                wait_ms=job.waited_ms,
            )
        )

    def _ended(self, attempt: Attempt, outcome: Outcome | None) -> None:
        job = attempt.job
        if self.attempts.get(job.id) is attempt:
            del self.attempts[job.id]
        attempt.slot.release()
        if attempt.reason is StopReason.FENCED or self.lease.is_gone.is_set():
            pass
        elif outcome is None:
            self._unfinished.add(job.id)
        elif self.reports.is_idle:
            self.settler.add(job, outcome, attempt.run_ms)
        else:
            self.reports.finish(job, partial(self.settler.add, job, outcome, attempt.run_ms))
        self.ended += 1
        if not self.attempts:
            self.ended_at = time.monotonic()
            self._is_quiet.set()
            self._notify_changed()
        elif self.allowance.is_reduced:
            self._notify_changed()

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs and every outcome is recorded."""
        return not self.knows()

    def note_published(self) -> None:
        """Note that nothing of what was committed before it began is left to publish."""
        self._published_at = min(self._published_at, time.monotonic())

    @property
    def has_published(self) -> bool:
        """Whether that has been noted."""
        return self._published_at < math.inf

    @property
    def jobs_came_at(self) -> float:
        """When what runs here may have brought the last jobs: attempts, or the first sweep."""
        return max(self.ended_at, self._published_at)

    def _on_fence(self, cause: str) -> None:
        """Stop all attempts and record no outcome of theirs."""
        self.allowance.halve(len(self.knows()) + self.claims.asked)
        cancelled = len(self.attempts)
        for attempt in list(self.attempts.values()):
            attempt.stop(StopReason.FENCED)
        self.emit(
            QueueFenced(queue=self.queue, incarnation=self.id, cancelled=cancelled, cause=cause)
        )
        self._notify_changed()

    def _notify_changed(self) -> None:
        for call in self._watchers:
            call()

    def _on_cancel(self, job_ids: Sequence[str]) -> None:
        """Stop the attempts of some jobs; of those that ended meanwhile there is none."""
        for job_id in job_ids:
            attempt = self.attempts.get(job_id)
            if attempt is not None and attempt.reason is None:
                attempt.stop(StopReason.CANCEL)

    def knows(self) -> set[str]:
        """Return the ids that run or wait to be recorded here."""
        return {*self.attempts, *self.reports.holds(), *self.settler.holds()}

    def end_grace(self) -> None:
        """End a pending `finish` now."""
        self._is_quiet.set()

    async def finish(self, grace_s: float) -> None:
        """Wait until no attempt runs, for at most ``grace_s``, or until `end_grace`."""
        if self.attempts:
            self._is_quiet.clear()
            with anyio.move_on_after(grace_s):
                await self._is_quiet.wait()

    async def stop(self) -> None:
        """Cancel what still runs, and give it some time to end."""
        self._stopped = list(self.attempts.values())
        for attempt in self._stopped:
            attempt.stop(StopReason.SHUTDOWN)
        await self.finish(STOP_S)

    async def put_back(self) -> int:
        """Return what `stop` cut short to the head of the queue; return how many jobs."""
        # One that ignores its cancellation ends with the process; its late outcome would be
        # refused.
        unfinished = self._unfinished | self.attempts.keys()
        jobs = [(a.job.id, a.job.claim) for a in self._stopped if a.job.id in unfinished]
        for batch in moved(jobs):
            await self.storage.put_back(self.queue, self.id, batch)
        return len(jobs)

    async def record(self) -> None:
        """Store what handlers have said, then what has ended."""
        await self.reports.report_once()
        await self.settler.drain()

    async def retire(self) -> None:
        """Hand back all that is left and be forgotten; a beat on its way finds nobody then."""
        self.lease.is_retired = True
        while await self.storage.retire(self.queue, self.id):
            pass

"""One step of a scheduler: it takes what is due, fires it, and moves it on.

An occurrence is fired before its schedule is moved on, and either may be repeated: what a scheduler
that dies between the two has fired, the next one fires in vain. So any number of them may run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import attrgetter
from typing import Protocol

from headrace.description import told
from headrace.errors import QueueFull, ReplyLost, StorageError, StorageFull, StorageUnavailable
from headrace.events import Emit, ScheduleFailed, ScheduleFired, ScheduleSkipped
from headrace.job import EnqueueOutcome
from headrace.schedule import HistoryEntry, ScheduleBody, decode_body
from headrace.scheduler.decision import Decision
from headrace.storage.base import Producer, Scheduler
from headrace.storage.batches import batches, fitting
from headrace.storage.limits import BATCH_LIMIT
from headrace.storage.schedules import StoredSchedule

TAKEN_LIMIT = 100
"""Schedules of one step."""

HOLD_MS = 1_000
"""How long others leave a taken schedule alone: many times what a step takes."""

FIRE_WITHIN_MS = 5_000
"""How long after it was taken a schedule's occurrences may be fired as was decided then."""

WARY_S = 600.0
"""How long a scheduler that has met what it can't fire leaves it to others that may be able to.

It takes whatever is due for a moment only, else many workers of an old release would keep a new
one's schedules from the few workers of that until they are late.
"""

WARY_HOLD_MS = 1

FAILED_LIMIT = 10_000
"""Schedules that are remembered since they have failed."""

WRITE_TRIES = 3
"""How often it is tried to move on a schedule that others change meanwhile."""

Due = tuple[StoredSchedule, ScheduleBody]
Fired = tuple[Decision, list[HistoryEntry]]


class SchedulerStorage(Producer, Scheduler, Protocol):
    """The roles that a scheduler needs."""


class Steps:
    """What a scheduler does again and again.

    Args:
        storage: where the schedules are, and the queues of their jobs.
        channel: is told when a schedule falls due sooner than a step has said; "" for none.
        emit: told what happens.
    """

    def __init__(self, storage: SchedulerStorage, *, channel: str = "", emit: Emit) -> None:
        self._storage = storage
        self._channel = channel
        self._emit = emit
        self._failed: dict[str, int] = {}
        self._failing: set[str] = set()
        self._wary_until = -math.inf

    async def step(self) -> int | None:
        """Fire some of what is due; return the ms to the next step, None: nothing is in sight.

        A schedule that can't be read or planned is left as it is, and told of once.

        Raises:
            StorageError: the storage does not answer, or is full; what was done stays, and another
                step goes on from there.
        """
        self._failing.clear()
        is_wary = time.monotonic() < self._wary_until
        taken = await self._storage.take_schedules(
            # What it can't fire comes again each time, and must leave room for the rest.
            limit=BATCH_LIMIT if is_wary else TAKEN_LIMIT,
            hold_ms=WARY_HOLD_MS if is_wary else HOLD_MS,
            channel=self._channel,
        )
        decisions = await self._decide(taken.schedules, taken.now_ms)
        while decisions:
            count = fitting(decision.size for decision in decisions)
            if not await self._carry_out(decisions[:count], taken.now_ms):
                break
            decisions = decisions[count:]
        if len(self._failing) < len(taken.schedules):
            return 0  # what was moved on may be due again by now
        # What can't be fired is due all the time.
        return None if taken.schedules else taken.next_ms

    async def _decide(self, stored: Iterable[StoredSchedule], now_ms: int) -> list[Decision]:
        due = [(one, body) for one in stored if (body := self._read(one)) is not None]
        decisions = []
        for one, body, is_running in await self._with_last_jobs(due):
            try:
                decisions.append(Decision.about(one, body, now_ms, is_running=is_running))
            except Exception as error:  # whatever is wrong with one, the others go on
                self._fail(one, error)
        return decisions

    def _read(self, stored: StoredSchedule) -> ScheduleBody | None:
        try:
            return decode_body(stored.body)
        except Exception as error:  # likewise
            self._fail(stored, error)
            return None

    def _fail(self, stored: StoredSchedule, error: Exception) -> None:
        self._failing.add(stored.id)
        self._wary_until = time.monotonic() + WARY_S
        if self._failed.get(stored.id) != stored.version:
            if len(self._failed) == FAILED_LIMIT:
                self._failed.clear()
            self._failed[stored.id] = stored.version
            self._emit(ScheduleFailed(schedule=stored.id, error=told(error)))

    async def _with_last_jobs(
        self, due: Iterable[Due]
    ) -> list[tuple[StoredSchedule, ScheduleBody, bool]]:
        """Return schedules with whether their last job has not ended, where that counts."""
        found = []
        asking: dict[str, list[Due]] = {}
        for one, body in due:
            if body.overlap == "skip" and body.last_job_id:
                asking.setdefault(body.job.queue, []).append((one, body))
            else:
                found.append((one, body, False))
        for queue, group in asking.items():
            with self._of_one_queue([one for one, _ in group]):
                ids = [body.last_job_id for _, body in group]
                ends = await self._storage.watch(queue, ids, channel="")
                for (one, body), end in zip(group, ends, strict=True):
                    is_running = end.state is not None and not end.state.is_terminal
                    found.append((one, body, is_running))
        return found

    @contextmanager
    def _of_one_queue(self, schedules: Iterable[StoredSchedule]) -> Iterator[None]:
        """Leave schedules as they are where their queue can't be used; others go on."""
        try:
            yield
        except StorageError as error:
            is_of_all = isinstance(error, (StorageUnavailable, ReplyLost, StorageFull))
            if is_of_all and not isinstance(error, QueueFull):
                raise
            for stored in schedules:
                self._fail(stored, error)

    async def _carry_out(self, decisions: Sequence[Decision], now_ms: int) -> bool:
        """Fire and move on what goes into one call; False: it took too long, others may have."""
        done: list[Fired] = []
        is_in_time = True
        by_queue = attrgetter("body.job.queue")
        for queue, group in groupby(sorted(decisions, key=by_queue), by_queue):
            items = list(group)
            with self._of_one_queue([decision.stored for decision in items]):
                outcomes, is_in_time = await self._fire(queue, items, now_ms)
                done += self._note_fired(items, outcomes, now_ms)
            if not is_in_time:
                break
        await self._move_on(done, now_ms)
        return is_in_time

    async def _fire(
        self, queue: str, decisions: Sequence[Decision], now_ms: int
    ) -> tuple[list[EnqueueOutcome], bool]:
        """Return the outcomes of the first occurrences, and whether these are all."""
        occurrences = [one for decision in decisions for one in decision.occurrences()]
        outcomes: list[EnqueueOutcome] = []
        for batch in batches(occurrences, lambda one: len(one.job.payload)):
            answer = await self._storage.fire(queue, batch, until_ms=now_ms + FIRE_WITHIN_MS)
            if answer is None:
                return outcomes, False
            outcomes += answer
        return outcomes, True

    def _note_fired(
        self, decisions: Iterable[Decision], outcomes: Sequence[EnqueueOutcome], now_ms: int
    ) -> list[Fired]:
        """Return what is to be moved on, the last of it perhaps by a part of its occurrences."""
        fired = []
        for decision in decisions:
            done = decision.first(len(outcomes))
            if done is None:
                break
            count = len(done.plan.fire)
            entries = done.entries(outcomes[:count], now_ms)
            outcomes = outcomes[count:]
            fired.append((done, entries))
            self._tell_fired(done, entries, now_ms)
        return fired

    async def _move_on(self, fired: Sequence[Fired], now_ms: int) -> None:
        """Write what has become of schedules, also over what others write meanwhile."""
        left = list(fired)
        for _ in range(WRITE_TRIES):
            if not left:
                return
            writes = [decision.write(entries, now_ms) for decision, entries in left]
            versions = await self._storage.write_schedules(writes, wakes=False)
            lost = []
            for (decision, entries), version in zip(left, versions, strict=True):
                if version is None:
                    lost.append((decision, entries))
                else:
                    self._tell_skipped(decision)
            left = await self._over(lost)

    async def _over(self, lost: Sequence[Fired]) -> list[Fired]:
        """Return those that are still to be moved on, as they are now."""
        if not lost:
            return []
        read = await self._storage.read_schedules([decision.stored.id for decision, _ in lost])
        now = {stored.id: stored for stored in read.schedules}
        again = []
        for decision, entries in lost:
            stored = now.get(decision.stored.id)
            if stored is not None and self._read(stored) is not None:
                still = decision.over(stored)
                if still is not None:
                    again.append((still, entries))
        return again

    def _tell_fired(self, decision: Decision, entries: Iterable[HistoryEntry], now_ms: int) -> None:
        schedule_id, body = decision.stored.id, decision.body
        for entry in entries:
            self._emit(
                ScheduleFired(
                    schedule=schedule_id,
                    job_id=entry.job_id,
                    queue=body.job.queue,
                    outcome=entry.outcome,
                    late_ms=now_ms - body.fire_ms(schedule_id, entry.instant_ms),
                )
            )

    def _tell_skipped(self, decision: Decision) -> None:
        for entry in decision.plan.passed:
            if entry.reason != "paused":
                self._emit(
                    ScheduleSkipped(
                        schedule=decision.stored.id,
                        reason=entry.reason or entry.outcome,
                        count=entry.count,
                        since_ms=entry.instant_ms,
                        until_ms=entry.until_ms or entry.instant_ms,
                    )
                )

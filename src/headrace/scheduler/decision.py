"""What was decided about a due schedule, and what is written of that: pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Self

import msgspec
from msgspec.structs import replace

from headrace.job import EnqueueOutcome
from headrace.planning import SchedulePlan, plan
from headrace.schedule import (
    HistoryEntry,
    ScheduleBody,
    decode_body,
    encode_body,
    encode_entry,
    occurrence_id,
)
from headrace.storage.limits import SCHEDULE_HISTORY
from headrace.storage.schedules import Occurrence, ScheduleWrite, StoredSchedule


class Decision(msgspec.Struct, frozen=True):
    """A schedule as it was read, and what is to become of its due occurrences."""

    stored: StoredSchedule
    body: ScheduleBody
    plan: SchedulePlan

    @classmethod
    def about(
        cls, stored: StoredSchedule, body: ScheduleBody, now_ms: int, *, is_running: bool
    ) -> Self:
        """Decide; ``is_running``: the job that it fired last has not ended."""
        return cls(stored, body, plan(body, stored.id, now_ms, is_running=is_running))

    @property
    def size(self) -> tuple[int, int]:
        """How many items a call has for it, and how many bytes of payloads."""
        count = len(self.plan.fire)
        return max(1, count), count * len(self.body.job.payload)

    def first(self, count: int) -> Self | None:
        """Return what is done where no more occurrences than this were fired; None: nothing.

        The next step goes on behind them. Were it to begin again, it might never get further.
        """
        fire = self.plan.fire
        if len(fire) <= count:
            return self
        if count == 0:
            return None
        # What is passed over comes before: where an overlap is, one alone is fired.
        part = replace(self.plan, fire=fire[:count], next_ms=fire[count])
        return type(self)(self.stored, self.body, part)

    def occurrences(self) -> Iterable[Occurrence]:
        """Return what is to be fired, the oldest first."""
        schedule_id, job = self.stored.id, self.body.job
        for instant in self.plan.fire:
            job_id = occurrence_id(schedule_id, instant)
            yield Occurrence(schedule_id, instant, job.request(job_id))

    def entries(self, outcomes: Iterable[EnqueueOutcome], now_ms: int) -> list[HistoryEntry]:
        """Return the history of what was fired, given what the storage made of it."""
        return [
            HistoryEntry(
                instant_ms=instant,
                fired_ms=now_ms,
                outcome="enqueued" if outcome.is_added else "duplicate",
                job_id=occurrence_id(self.stored.id, instant),
            )
            for instant, outcome in zip(self.plan.fire, outcomes, strict=True)
        ]

    def write(self, fired: Sequence[HistoryEntry], now_ms: int) -> ScheduleWrite:
        """Return the change that moves the schedule on; one that has ended is deleted."""
        stored = self.stored
        if self.body.next_ms is None and not fired:
            return ScheduleWrite(id=stored.id, expected=stored.version)
        body = replace(self.body, next_ms=self.plan.next_ms)
        if fired:
            last = fired[-1]
            body = replace(body, last_ms=last.instant_ms, last_job_id=last.job_id)
        history = sorted((*self.plan.passed, *fired), key=attrgetter("instant_ms"))
        return ScheduleWrite(
            id=stored.id,
            expected=stored.version,
            app=stored.app,
            due_ms=body.due_ms(stored.id, now_ms),
            body=encode_body(body),
            history=tuple(map(encode_entry, history[-SCHEDULE_HISTORY:])),
        )

    def over(self, stored: StoredSchedule) -> Self | None:
        """Return what is to be written of this over the schedule as it was changed meanwhile.

        One that has other occurrences now gets word of what was fired, and nothing else. None if
        somebody has moved it on.
        """
        was, body = self.body, decode_body(stored.body)
        if was.next_ms is None:
            return None
        if body.next_ms == was.next_ms:
            next_ms = body.next_after(self._last_ms)
            return type(self)(stored, body, replace(self.plan, next_ms=next_ms))
        is_told = (body.last_ms, body.last_job_id) != (was.last_ms, was.last_job_id)
        if is_told or not self.plan.fire:
            return None
        return type(self)(stored, body, replace(self.plan, passed=(), next_ms=body.next_ms))

    @property
    def _last_ms(self) -> int:
        """The last occurrence that was decided about."""
        passed = [entry.until_ms or entry.instant_ms for entry in self.plan.passed]
        return max((*self.plan.fire, *passed), default=(self.body.next_ms or 0) - 1)

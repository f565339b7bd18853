"""The model of strikes: which jobs are not run, in whose line they wait, and when they go on."""

from __future__ import annotations

from msgspec.structs import replace

from headrace.job import JobState
from headrace.outcome import Struck
from headrace.storage.values import StrikeList
from headrace.strike import Strike, StrikeAction
from tests.model.gates import GateModel
from tests.model.places import Dump, QueueState, Record

FRONT = 2**48
"""Places before all heads."""


def is_line(name: str) -> bool:
    """Whether a line is a strike's: that of a gate has a tab."""
    return bool(name) and "\t" not in name


class StrikeModel(GateModel):
    """Claims meet strikes of a task, and workers settle those of arguments."""

    def strike(self, queue: str, strike: Strike) -> None:
        """Set a strike."""
        q = self.queue(queue)
        before = q.strikes.pop(strike.id, None)
        q.strikes[strike.id] = replace(strike, since_ms=self.now)
        self._note_conditions(q, strike, before)

    def lift(self, queue: str, strike_id: str) -> bool:
        """Lift a strike, and open its line."""
        q = self.queue(queue)
        before = q.strikes.pop(strike_id, None)
        if before is None:
            return False
        self._note_conditions(q, before, None)
        self._open(q, strike_id)
        self.close_gates(q)
        q.wake_all()
        return True

    def strikes(self, queue: str) -> StrikeList:
        """Return the strikes of a queue."""
        q = self.queue(queue)
        return StrikeList(self.strikes_version(q), by_age(q))

    def strikes_version(self, q: QueueState) -> int:
        """Return that of the strikes with conditions, 0 without any."""
        return q.strikes_version if any(one.where for one in q.strikes.values()) else 0

    def struck(self, q: QueueState, job: Record) -> Strike | None:
        """Return the strike that a claim of a job meets."""
        met = [one for one in by_age(q) if one.task == job.task and not one.where]
        return met[0] if met else None

    def meet(self, q: QueueState, job: Record, strike: Strike) -> None:
        """Keep a ready job from being run."""
        if strike.action is StrikeAction.CANCEL:
            self.end_cancelled(q, job, job.keep, reason="struck")
        else:
            self.park(q, job, strike.id)

    def lay_aside(self, q: QueueState, job: Record, outcome: Struck) -> bool:
        """Have an active job wait in the line of a strike; False: that stands no more."""
        if outcome.strike not in q.strikes:
            return False
        q.front += 1
        job.number = q.front - FRONT
        self.park(q, job, outcome.strike)
        return True

    def _note_conditions(self, q: QueueState, strike: Strike, before: Strike | None) -> None:
        q.strikes_version += bool(strike.where or (before and before.where))

    def _has_room(self, q: QueueState, name: str) -> bool:
        return name not in q.strikes and super()._has_room(q, name)

    def strikes_dump(self, q: QueueState) -> Dump:
        """Return the strikes as they are kept."""
        return {"strikes": {one.id: one for one in q.strikes.values()}}


def by_age(q: QueueState) -> list[Strike]:
    """Return the strikes of a queue in the order in which they were set."""
    return sorted(q.strikes.values(), key=lambda one: (one.since_ms, one.id))


def is_laid_aside(job: Record) -> bool:
    """Whether a strike holds a job up."""
    return job.state is JobState.BLOCKED and is_line(job.parked)

"""Why a job does not run, as its producer and its operators see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from headrace.clock import datetime_of
from headrace.job import JobState
from headrace.storage.situation import Situation
from headrace.views.reason import Reason
from headrace.views.reasons import reasons_of
from headrace.views.value import PublicValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Why(PublicValue):
    """Why a job does not run; `JobHandle.why` returns it, and its text is for people.

    All of it was so at one instant, ``at``. There is a reason at least: each stands in the way by
    itself, the one to look at first comes first. Of a job that runs, or has ended, it says so.
    """

    id: str
    queue: str
    task: str
    state: JobState
    at: datetime
    reasons: tuple[Reason, ...]

    def __str__(self) -> str:
        lines = [self.heading]
        for reason in self.reasons:
            lines += [f"- {reason.text}", f"  {reason.advice}"]
        return "\n".join(lines)

    @property
    def heading(self) -> str:
        """Which job it is, and its state."""
        return f"Job {self.id} of {self.task} in {self.queue} is {self.state}:"

    @classmethod
    def of(cls, situation: Situation) -> Why:
        """Return what a storage has told."""
        record = situation.record
        return cls(
            id=record.id,
            queue=record.queue,
            task=record.task,
            state=record.state,
            at=datetime_of(situation.now_ms),
            reasons=tuple(reasons_of(situation)),
        )

"""One reason why a job does not run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from headrace.views.value import PublicValue


class ReasonKind(StrEnum):
    """Why a job does not run; ``docs/guides/why-is-my-job-not-running.md`` tells of each."""

    ACTIVE = "active"
    """It runs."""
    ENDED = "ended"
    """It has ended."""
    EARLIER = "earlier"
    """It waits for the end of the active job of its id."""
    PAUSED = "paused"
    """Its queue is paused, or its task there."""
    STRUCK = "struck"
    """A strike holds jobs like it back."""
    NO_WORKER = "no_worker"
    """No worker of its queue is alive."""
    LANE = "lane"
    """No live worker has slots of its lane, or as many as it needs."""
    TASK = "task"
    """No live worker with slots of its lane knows its task."""
    EXPIRED = "expired"
    """It is too late to start it."""
    TIME = "time"
    """It waits for its time."""
    RETRY = "retry"
    """It has failed, and waits for its next attempt."""
    PUT_BACK = "put_back"
    """Workers that had it have left it to others."""
    LIMIT = "limit"
    """As many jobs run as a limit allows at once."""
    RATE = "rate"
    """As many jobs have started as a limit allows in its time."""
    TURN = "turn"
    """Another job of its key has the turn of that key."""
    LINE = "line"
    """It waits in the line of a limit that has room."""
    MAX_ACTIVE = "max_active"
    """As many jobs run as its queue allows."""
    BEHIND = "behind"
    """Others of its lane come before it."""
    LOST = "lost"
    """Its place in line was lost."""
    DUE = "due"
    """Its time has come, and the next claim puts it in line."""
    NEXT = "next"
    """It is the next of its lane."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason(PublicValue):
    """One reason, with what to do about it; `Why` has all of a job.

    Attributes:
        kind: which.
        text: what keeps the job, in a sentence or two.
        advice: what to do, or what comes next by itself.
        until: when time alone ends it, as far as that is known.
        limit: the limit that has no room.
        key: its key, "" for jobs without one; None where there is no limit.
        jobs: ids of the jobs that it waits for, some of them where there are many.
        before: how many come before it.
        is_least: there are ``before`` at least; no more were counted.
    """

    kind: ReasonKind
    text: str
    advice: str
    until: datetime | None = None
    limit: str | None = None
    key: str | None = None
    jobs: tuple[str, ...] = ()
    before: int | None = None
    is_least: bool = False

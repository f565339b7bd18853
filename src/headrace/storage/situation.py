"""How a job stands, and what may keep it from running: what `Inspector.why` returns.

It is told of any queue in a bounded time. What that cuts short says so: `Before.is_least`,
`GateStanding.holders` beside its counts, `Situation.has_more_workers`.
"""

from __future__ import annotations

import msgspec

from headrace.job import JobRecord
from headrace.limit import Terms
from headrace.storage.incarnations import IncarnationInfo
from headrace.strike import Strike


class Before(msgspec.Struct, frozen=True):
    """How many jobs come before another.

    Attributes:
        n: how many.
        is_least: there are at least so many, and no more were counted: where it is over
            `BEFORE_REACH`, or over `BEFORE_LOOKS` and jobs were cancelled in that line.
    """

    n: int
    is_least: bool = False


class GateStanding(msgspec.Struct, frozen=True, kw_only=True):
    """One gate of a job, as it is for that job.

    Attributes:
        name: the limit's.
        key: the key's text.
        terms: what holds, None: nobody is held up.
        ready: how many jobs have a place and wait for a worker.
        active: how many have one and run.
        tokens: how many starts its rate allows now, 0 without a rate.
        token_in_ms: how long until there is a token more than jobs that are ready, or one if this
            job is; None: time alone brings none.
        before: how many stand in its line before the job, None where the job is not in this line.
        holders: ids of jobs that have places, those that run first: `HOLDERS_LIMIT` at most, as
            they are found among `HOLDERS_LOOKS` of each kind. Those that are ready are looked for
            in the line of the job first. There are fewer than ``ready`` and ``active`` say where
            more were not found: those count all.
    """

    name: str
    key: str
    terms: Terms | None
    ready: int
    active: int
    tokens: int
    token_in_ms: int | None
    before: Before | None
    holders: list[str]

    @property
    def is_full(self) -> bool:
        """Whether as many jobs have places as its concurrency allows."""
        most = self.terms.concurrency if self.terms else 0
        return most > 0 and self.ready + self.active >= most


class NextRun(msgspec.Struct, frozen=True):
    """The job that is blocked by the active one of its id.

    Attributes:
        created_ms: when it came.
        due_ms: when it is to be due, 0: as soon as the active one has ended.
    """

    created_ms: int
    due_ms: int


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """How a job stands at one instant, and what may keep it from running.

    Attributes:
        record: all that is kept of it.
        now_ms: the instant.
        is_paused: whether claims are stopped in its queue.
        max_active: most active jobs of its queue, 0: no bound.
        active: how many there are.
        before: how many jobs of its lane are to be claimed before it; None if it is not queued, or
            has lost its place.
        next: the job that follows it, None without one.
        gates: those of a job that is queued or blocked, in their order.
        strikes: those of a job that waits: of its task, or of any; in the order in which they were
            set. What arguments they ask for was not compared with the job's.
        struck_before: how many stand before it in the line of the strike that ``record.parked``
            names; None: it is in no such line.
        owner: the worker that runs it, None if it is not active or that one is not known.
        workers: live workers of its queue, by their ids: `WHY_WORKERS` at most. Live are those that
            have beaten within their lease, and were not condemned. Where there are more than
            `WHY_BEATS` workers, dead ones too, these are among so many of them.
        has_more_workers: whether there are more than these, or there may be.
    """

    record: JobRecord
    now_ms: int
    is_paused: bool
    max_active: int
    active: int
    before: Before | None
    next: NextRun | None
    gates: list[GateStanding]
    strikes: list[Strike]
    struck_before: Before | None
    owner: IncarnationInfo | None
    workers: list[IncarnationInfo]
    has_more_workers: bool

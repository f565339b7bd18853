"""What the model knows of a queue: its jobs, where each one is, and its incarnations."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headrace.job import ErrorInfo, JobState, Verdict
from headrace.request import JobRequest
from headrace.storage.incarnations import IncarnationInfo
from headrace.storage.queues import QueueSettings
from headrace.strike import Strike
from headrace.update import Update

CALLS_TTL_MS = 600_000
OUTPUT_KEPT_MS = 3_600_000
ERRORS_KEPT = 10
MESSAGE_LIMIT = 65_536
JOINED_MS = 60_000
BUCKET_MS = 10_000
CREATED_IS_TOLD = ("completed", "failed", "cancelled", "purged")
WAITING = frozenset({JobState.SCHEDULED, JobState.QUEUED, JobState.RETRYING, JobState.BLOCKED})
COUNTED = (JobState.QUEUED, JobState.SCHEDULED, JobState.RETRYING, JobState.ACTIVE)

Event = tuple[str, str, str, int, str, int, int, str, str, int, int, str]
"""Kind, job id, task, attempt, worker, wait_ms, run_ms, detail, error, due_ms, created_ms, who.

An error's type, message and frame are one text, a tab between two, and so is who has joined or
left: name, host and versions.
"""
Dump = dict[str, Any]
"""Everything that a queue keeps, as plain data; the same of the model and of each storage."""


@dataclass
class Record:
    """A job; ``dies`` is when its record ends, set once the job has ended.

    ``on_failed`` is None where the queue says which task gets its failure, "" of a fail job.
    ``gates`` are the limits that it meets, ``parked`` that in whose line it waits. Its ``number``
    is its place among those that are ready: the least is the first.
    """

    id: str
    task: str
    payload: bytes
    tier: int
    lane: str
    created: int
    at: int
    state: JobState
    expires: int
    max_stalls: int
    keep: int
    options: bytes
    due: int | None = None
    channels: list[str] = field(default_factory=list)
    epoch: int = 0
    nonce: str = ""
    failures: int = 0
    stalls: int = 0
    cancel: bool = False
    joined: bool = False
    put_back: tuple[int, int, ErrorInfo] | None = None
    run: int = 0
    reason: str = ""
    error: str = ""
    result: bytes | None = None
    dies: int | None = None
    result_dies: int | None = None
    progress: float | None = None
    progress_text: str = ""
    errors: list[ErrorInfo] = field(default_factory=list)
    on_failed: str | None = None
    gates: str = ""
    parked: str = ""
    number: int = 0
    slots: int = 1

    @property
    def cause(self) -> ErrorInfo | None:
        """Why it is put back, since the first of a row; the row ends where it was charged."""
        if self.put_back is None or self.state.is_terminal:
            return None
        since, charged, error = self.put_back
        return (
            msgspec.structs.replace(error, at_ms=since)
            if charged == self.failures + self.stalls
            else None
        )

    @property
    def owner(self) -> str:
        """The incarnation that claimed the job last."""
        return self.nonce.partition("/")[0]

    def is_overdue(self, now: int) -> bool:
        """Whether it is too late to start for the first time."""
        return self.epoch == 0 and 0 < self.expires <= now


@dataclass
class Successor:
    """What runs after the active job of its id, and what its updates change together.

    The job's ``due`` is None until one has named a time.
    """

    job: Record
    update: Update


@dataclass
class Output:
    """The pieces of a job's output by their numbers: those of one attempt.

    ``is_outworn`` once an hour has gone by since the last piece: then they may be gone, and a clock
    that is set back brings nothing back.
    """

    epoch: int
    at: int
    pieces: dict[int, bytes] = field(default_factory=dict)
    is_outworn: bool = False


@dataclass
class ContractIncarnation:
    """One that was registered, and the last numbers of its calls."""

    lease_ms: int
    since: int
    at: int
    info: bytes
    count: int = 0
    is_condemned: bool = False
    claim: int = 0
    settle: int = 0
    settled: list[bool] = field(default_factory=list)


@dataclass
class Remembered:
    """A call of `enqueue`, to answer it again."""

    number: int
    answer: list[Verdict]
    at: int


@dataclass
class Mark:
    """The last instant of a schedule that was fired in a queue, and when it was.

    ``is_outworn`` once it has reached its age: then it may be gone.
    """

    instant: int
    at: int
    is_outworn: bool = False


@dataclass
class Reader:
    """A reader of events: the last that it has acknowledged, and when it did so."""

    number: int = 0
    at: int = 0


@dataclass
class Staged:
    """What each call has staged, and when that is gone: None once it is committed."""

    calls: list[list[JobRequest]] = field(default_factory=list)
    dies: int | None = None


@dataclass
class Write:
    """A committed write, and when it is no longer known: None while it is not published."""

    batch: int = 0
    stages_left: int = 0
    jobs: int = 0
    added: int = 0
    keep: int = 0
    dies: int | None = None


@dataclass
class QueueState:
    """One queue. ``finished`` and ``dead`` map the ids of ended jobs to when they ended.

    A place in them stays when its record has reached its age, until `prune` takes it out.
    ``tokens`` are the lanes in which a wake-up token must be, unless one got lost; ``lanes`` those
    of tasks, as workers have said. Stages are named by token and write. ``entries`` map the
    ids of event entries to their last numbers. ``moved`` are the ids of jobs that did not get their
    due time as they came: of these that are due together, any may come first. ``idempotent`` maps
    callers' keys to the id of the first job with each, and to when that is over. ``limits`` map
    names to the terms that are declared and those that are set; ``gate_due`` is when gates are to
    open. ``strikes_version`` counts the changes of strikes with conditions, and ``front`` the jobs
    that were struck as they were taken. ``aged`` counts the jobs that were taken since the last of
    a lower tier, where tiers age.
    """

    name: str
    settings: QueueSettings = field(default_factory=QueueSettings)
    aged: int = 0
    is_paused: bool = False
    tokens: set[str] = field(default_factory=set)
    lanes: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, Record] = field(default_factory=dict)
    successors: dict[str, Successor] = field(default_factory=dict)
    moved: set[str] = field(default_factory=set)
    ready: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    delayed: list[str] = field(default_factory=list)
    finished: dict[str, int] = field(default_factory=dict)
    dead: dict[str, int] = field(default_factory=dict)
    workers: dict[str, ContractIncarnation] = field(default_factory=dict)
    calls: dict[str, dict[int, Remembered]] = field(default_factory=dict)
    tallies: Counter[tuple[int, str]] = field(default_factory=Counter)
    outputs: dict[str, Output] = field(default_factory=dict)
    fired: dict[str, Mark] = field(default_factory=dict)
    stages: dict[tuple[str, str], Staged] = field(default_factory=dict)
    to_publish: list[tuple[str, str]] = field(default_factory=list)
    writes: dict[str, Write] = field(default_factory=dict)
    readers: dict[str, Reader] = field(default_factory=dict)
    entries: dict[str, int] = field(default_factory=dict)
    idempotent: dict[str, tuple[str, int]] = field(default_factory=dict)
    limits: dict[str, tuple[str, str]] = field(default_factory=dict)
    buckets: dict[str, Any] = field(default_factory=dict)
    gate_due: dict[str, int] = field(default_factory=dict)
    strikes: dict[str, Strike] = field(default_factory=dict)
    strikes_version: int = 0
    front: int = 0
    head: int = 0
    tail: int = 0

    def next_head(self) -> int:
        """Return a number before all others."""
        self.head -= 1
        return self.head

    def next_tail(self) -> int:
        """Return a number behind all others."""
        self.tail += 1
        return self.tail

    def held_by(self, incarnation: str) -> list[Record]:
        """Return what an incarnation has claimed."""
        return [
            job
            for job in self.jobs.values()
            if job.state is JobState.ACTIVE and job.owner == incarnation
        ]

    def ended(self, state: JobState) -> dict[str, int]:
        """Return where jobs that ended in a state have their places."""
        return self.dead if state is JobState.FAILED else self.finished

    def has_ended(self, job_id: str, ended: dict[str, int]) -> bool:
        """Whether a place is that of a record, and not left over from an earlier one."""
        job = self.jobs.get(job_id)
        return job is not None and job.state.is_terminal and self.ended(job.state) is ended

    def live(self, incarnation: str) -> ContractIncarnation | None:
        """Return one that may claim: None if it is unknown or condemned."""
        known = self.workers.get(incarnation)
        return None if known is None or known.is_condemned else known

    def channel_of(self, incarnation: str) -> str:
        """Return the channel of one that may claim, "" without one."""
        me = self.live(incarnation)
        return msgspec.json.decode(me.info, type=IncarnationInfo).channel if me else ""

    def queued_by_lane(self) -> dict[str, int]:
        """Count the ready jobs of each lane that has any, by name."""
        lanes: Counter[str] = Counter()
        for (lane, _), ids in self.ready.items():
            lanes[lane] += len(ids)
        return {lane: n for lane, n in sorted(lanes.items()) if n}

    def wake(self, lane: str) -> None:
        """Leave a wake-up token in a lane; not in a paused queue."""
        if not self.is_paused:
            self.tokens.add(lane)

    def wake_all(self) -> None:
        """Leave one in every lane that has ready jobs, and in that of the next due one.

        Where a gate is due before that, who waits for the gate may be woken instead.
        """
        for lane in self.queued_by_lane():
            self.wake(lane)
        first_ms = min(self.gate_due.values(), default=None)
        for job in [self.jobs[job_id] for job_id in self.delayed[:1]]:
            if first_ms is None or (job.due or 0) <= first_ms:
                self.wake(job.lane)

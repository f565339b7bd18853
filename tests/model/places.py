"""What the model knows of a queue: its jobs, where each one is, and its incarnations."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from headrace.job import EnqueueOutcome, ErrorInfo, JobState
from headrace.storage.values import QueueSettings

CALLS_TTL_MS = 600_000
ERRORS_KEPT = 10
MESSAGE_LIMIT = 65_536
BUCKET_MS = 10_000
WAITING = frozenset({JobState.SCHEDULED, JobState.QUEUED, JobState.RETRYING})
COUNTED = (JobState.QUEUED, JobState.SCHEDULED, JobState.RETRYING, JobState.ACTIVE)

Event = tuple[str, str, str, int, str, int, int, str]
"""Kind, job id, task, attempt, worker, wait_ms, run_ms, detail."""
Dump = dict[str, Any]
"""Everything that a queue keeps, as plain data; the same of the model and of each storage."""


@dataclass
class Record:
    """A job; ``dies`` is when its record ends, set once the job has ended."""

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
    attempts: int = 0
    stalls: int = 0
    cancel: bool = False
    released: int | None = None
    run: int = 0
    reason: str = ""
    error: str = ""
    result: bytes | None = None
    dies: int | None = None
    result_dies: int | None = None
    errors: list[ErrorInfo] = field(default_factory=list)

    @property
    def owner(self) -> str:
        """The incarnation that claimed the job last."""
        return self.nonce.partition("/")[0]

    def is_overdue(self, now: int) -> bool:
        """Whether it is too late to start."""
        return 0 < self.expires <= now


@dataclass
class Incarnation:
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
    answer: list[EnqueueOutcome]
    at: int


@dataclass
class QueueState:
    """One queue. ``finished`` and ``dead`` map the ids of ended jobs to when they ended.

    A place in them stays when its record has reached its age, until `prune` takes it out.
    ``has_token``: a wake-up token must be there, unless one got lost.
    """

    name: str
    settings: QueueSettings = field(default_factory=QueueSettings)
    is_paused: bool = False
    has_token: bool = False
    jobs: dict[str, Record] = field(default_factory=dict)
    ready: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    delayed: list[str] = field(default_factory=list)
    finished: dict[str, int] = field(default_factory=dict)
    dead: dict[str, int] = field(default_factory=dict)
    workers: dict[str, Incarnation] = field(default_factory=dict)
    calls: dict[str, dict[int, Remembered]] = field(default_factory=dict)
    tallies: Counter[tuple[int, str]] = field(default_factory=Counter)

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

    def live(self, incarnation: str) -> Incarnation | None:
        """Return one that may claim: None if it is unknown or condemned."""
        known = self.workers.get(incarnation)
        return None if known is None or known.is_condemned else known

    def wake(self) -> None:
        """Leave a wake-up token; not in a paused queue."""
        self.has_token = self.has_token or not self.is_paused

"""A job as its producer and its operators see it: what is kept, a line of a listing, an event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from headrace.clock import datetime_of
from headrace.events import EventRecord, JobEventKind
from headrace.fairness import FAIR_LIMIT, fair_key_of, is_window
from headrace.job import ErrorInfo, JobRecord, JobRow, JobState
from headrace.limit import keys_of
from headrace.stored_options import decode_stored
from headrace.views.value import PublicValue, instant, read_plain

MEASURED = (JobEventKind.COMPLETED, JobEventKind.RETRYING, JobEventKind.SNOOZED)
"""Events that end an attempt that was measured, even where it took no millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorEntry(PublicValue):
    """One entry of a job's error history."""

    start: int
    at: datetime | None
    type: str
    message: str
    traceback: str = field(repr=False)

    @classmethod
    def of(cls, error: ErrorInfo) -> ErrorEntry:
        """Return what is kept of an error."""
        return cls(
            start=error.start,
            at=instant(error.at_ms),
            type=error.type,
            message=error.message,
            traceback=error.traceback,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus(PublicValue):
    """All that is kept of a job; `JobHandle.status` returns it.

    Arguments and result are as they are stored, as plain data: dates are text there, objects are
    dicts. `JobHandle.result` gives the type that the task declares. They, and the options, are not
    in its ``repr``. ``put_back`` is why workers have left a job that waits to others, since its
    ``at``; None if none has. ``has_next`` tells of an active job that another of its id follows.
    ``limits`` are the keys of the limits that it meets, by their names, and ``blocked_by`` names
    that which has no room for it, or says ``task:`` with a task that is paused, or ``strike:`` with
    a strike's id. ``fair_key`` is the key that takes turns with others, None if the job does not;
    where it waits for its turn, ``blocked_by`` is ``"fair"``. ``slots`` are those of its lane that
    it holds while it runs.
    """

    id: str
    queue: str
    task: str
    state: JobState
    priority: int
    lane: str
    failures: int
    stalls: int
    starts: int
    created_at: datetime
    changed_at: datetime
    due_at: datetime | None
    expires_at: datetime | None
    run_s: float | None
    incarnation: str | None
    cancel_requested: bool
    reason: str | None
    progress: float | None
    progress_text: str | None
    options: Any = field(repr=False)
    args: Any = field(repr=False)
    result: Any = field(repr=False)
    errors: tuple[ErrorEntry, ...]
    put_back: ErrorEntry | None
    has_next: bool
    on_failed: str | None
    limits: dict[str, str]
    fair_key: str | None
    blocked_by: str | None
    slots: int

    @classmethod
    def of(cls, record: JobRecord, decode: Callable[[bytes], Any]) -> JobStatus:
        """Return what a record says; ``decode`` reads plain data."""
        return cls(
            id=record.id,
            queue=record.queue,
            task=record.task,
            state=record.state,
            priority=record.priority,
            lane=record.lane,
            failures=record.failures,
            stalls=record.stalls,
            starts=record.starts,
            created_at=datetime_of(record.created_ms),
            changed_at=datetime_of(record.changed_ms),
            due_at=instant(record.due_ms),
            expires_at=instant(record.expires_ms),
            run_s=_run_s(record),
            incarnation=record.incarnation or None,
            cancel_requested=record.cancel_requested,
            reason=record.reason or None,
            progress=record.progress,
            progress_text=record.progress_text or None,
            options=read_plain(decode_stored, record.options),
            args=read_plain(decode, record.payload),
            result=read_plain(decode, record.result),
            errors=tuple(map(ErrorEntry.of, record.errors)),
            put_back=None if record.put_back is None else ErrorEntry.of(record.put_back),
            has_next=record.has_next,
            on_failed=record.on_failed or None,
            limits=keys_of(record.gates),
            fair_key=fair_key_of(record.gates),
            blocked_by=_limit_of(record.parked) or None,
            slots=record.slots,
        )


def _limit_of(gate: str) -> str:
    return FAIR_LIMIT if is_window(gate) else gate.partition("\t")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary(PublicValue):
    """One job of a listing, without arguments and result; `Queue.jobs` yields it.

    ``error`` is the type of a dead letter's last error, or of what a waiting job was put back for,
    and ``message`` the first 200 characters of what it said.
    """

    id: str
    queue: str
    task: str
    state: JobState
    priority: int
    failures: int
    stalls: int
    starts: int
    created_at: datetime
    changed_at: datetime
    due_at: datetime | None
    run_s: float | None
    incarnation: str | None
    reason: str | None
    error: str | None
    message: str | None

    @classmethod
    def of(cls, queue: str, row: JobRow) -> JobSummary:
        """Return what a row of a queue's listing says."""
        return cls(
            id=row.id,
            queue=queue,
            task=row.task,
            state=row.state,
            priority=row.priority,
            failures=row.failures,
            stalls=row.stalls,
            starts=row.starts,
            created_at=datetime_of(row.created_ms),
            changed_at=datetime_of(row.changed_ms),
            due_at=instant(row.due_ms),
            run_s=_run_s(row),
            incarnation=row.incarnation or None,
            reason=row.reason or None,
            error=row.error or None,
            message=row.error_message or None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent(PublicValue):
    """One transition of a job, or an incarnation that joined or left; `Queue.events` yields it.

    ``number`` is the event's own in its queue, rising by one an event, 0 where that is not known.
    ``created_at`` is told where a job has ended, ``due_at`` where it waits for a time. ``job_id``
    and ``incarnation`` are both the incarnation's where one has joined or left, ``worker``,
    ``host`` and the versions are told of it alone, and it has no task.
    """

    queue: str
    number: int
    stream_id: str
    at: datetime
    kind: JobEventKind
    job_id: str
    task: str
    start: int
    incarnation: str | None
    wait_s: float | None
    run_s: float | None
    detail: str | None
    error: str | None
    message: str | None
    frame: str | None
    due_at: datetime | None
    created_at: datetime | None
    worker: str | None
    host: str | None
    version: str | None
    app_version: str | None

    @classmethod
    def of(cls, queue: str, event: EventRecord) -> JobEvent:
        """Return what a queue's stream keeps of an event."""
        has_waited = event.kind is JobEventKind.ACTIVE
        has_run = event.run_ms or event.kind in MEASURED
        return cls(
            queue=queue,
            number=event.number,
            stream_id=event.stream_id,
            at=datetime_of(event.at_ms),
            kind=event.kind,
            job_id=event.job_id,
            task=event.task,
            start=event.start,
            incarnation=event.incarnation or None,
            wait_s=event.wait_ms / 1000 if has_waited else None,
            run_s=event.run_ms / 1000 if has_run else None,
            detail=event.detail or None,
            error=event.error or None,
            message=event.message or None,
            frame=event.frame or None,
            due_at=instant(event.due_ms),
            created_at=instant(event.created_ms),
            worker=event.worker or None,
            host=event.host or None,
            version=event.version or None,
            app_version=event.app_version or None,
        )


def _run_s(job: JobRecord | JobRow) -> float | None:
    """Return how long the last attempt ran, once the job has ended."""
    return job.run_ms / 1000 if job.state.is_terminal and job.starts else None

"""Jobs that are read back: how they have ended, and all that is kept of them for an archive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from headrace.clock import datetime_of
from headrace.fairness import fair_key_of
from headrace.job import JobRecord, JobState
from headrace.limit import keys_of
from headrace.storage.exports import cursor_behind
from headrace.storage.values import End
from headrace.stored_options import decode_stored
from headrace.views.jobs import ErrorEntry
from headrace.views.value import PublicValue, read_plain


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome(PublicValue):
    """How a job has ended, or stands; `Queue.outcomes` returns it.

    ``state`` is None where there is no such job. ``has_result`` tells a result that is None from
    one that is not kept.
    """

    id: str
    queue: str
    state: JobState | None
    reason: str | None
    has_result: bool
    result: Any = field(repr=False)
    error: ErrorEntry | None

    @classmethod
    def of(cls, end: End, decode: Callable[[bytes], Any]) -> JobOutcome:
        """Return what an end says; ``decode`` reads plain data."""
        return cls(
            id=end.id,
            queue=end.queue,
            state=end.state,
            reason=end.reason or None,
            has_result=end.result is not None,
            result=read_plain(decode, end.result),
            error=None if end.error is None else ErrorEntry.of(end.error),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedJob(PublicValue):
    """An ended job with all that is kept of it; `Queue.export` yields it.

    Arguments and result are as they are stored, as in `JobStatus`. ``cursor`` is where to go on
    behind this job, now or later.
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
    ended_at: datetime
    run_s: float | None
    incarnation: str | None
    reason: str | None
    progress: float | None
    progress_text: str | None
    on_failed: str | None
    limits: dict[str, str]
    fair_key: str | None
    slots: int
    options: Any = field(repr=False)
    args: Any = field(repr=False)
    has_result: bool
    result: Any = field(repr=False)
    errors: tuple[ErrorEntry, ...]
    cursor: str

    @classmethod
    def of(cls, record: JobRecord, decode: Callable[[bytes], Any]) -> ExportedJob:
        """Return what a record of an ended job says; ``decode`` reads plain data."""
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
            ended_at=datetime_of(record.changed_ms),
            run_s=record.run_ms / 1000 if record.starts else None,
            incarnation=record.incarnation or None,
            reason=record.reason or None,
            progress=record.progress,
            progress_text=record.progress_text or None,
            on_failed=record.on_failed or None,
            limits=keys_of(record.gates),
            fair_key=fair_key_of(record.gates),
            slots=record.slots,
            options=read_plain(decode_stored, record.options),
            args=read_plain(decode, record.payload),
            has_result=record.result is not None,
            result=read_plain(decode, record.result),
            errors=tuple(map(ErrorEntry.of, record.errors)),
            cursor=cursor_behind(record),
        )

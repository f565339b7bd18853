"""The JSON documents of jobs, for ``-o json``; see `headrace.cli.views` for their rules."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.cli.views import instant
from headrace.codec import read
from headrace.job import JobRecord, JobRow
from headrace.json_codec import JSON

_decode = JSON.decoder(Any)


class ErrorView(msgspec.Struct, kw_only=True):
    """One entry of a job's error history."""

    start: int
    at: str | None
    type: str
    message: str
    traceback: str


class JobView(msgspec.Struct, kw_only=True):
    """All that is kept of a job: ``job show``."""

    id: str
    queue: str
    task: str
    state: str
    priority: int
    lane: str
    failures: int
    stalls: int
    starts: int
    created_at: str | None
    changed_at: str | None
    due_at: str | None
    expires_at: str | None
    run_ms: int | None
    incarnation: str | None
    cancel_requested: bool
    reason: str | None
    progress: float | None
    progress_text: str | None
    options: msgspec.Raw | None
    args: msgspec.Raw | None
    result: msgspec.Raw | None
    errors: list[ErrorView]


class JobLine(msgspec.Struct, kw_only=True):
    """One job of a listing: ``job list``, ``dead list``."""

    id: str
    queue: str
    task: str
    state: str
    priority: int
    failures: int
    stalls: int
    starts: int
    created_at: str | None
    changed_at: str | None
    due_at: str | None
    run_ms: int | None
    incarnation: str | None
    reason: str | None
    error: str | None


def raw(stored: bytes | None) -> msgspec.Raw | None:
    """Return stored JSON as it is, so that no number loses digits; anything else as a string."""
    if not stored:
        return None
    try:
        read(_decode, stored)
    except msgspec.DecodeError:
        return msgspec.Raw(msgspec.json.encode(stored.decode(errors="replace")))
    return msgspec.Raw(stored)


def job_view(record: JobRecord) -> JobView:
    """Return a job's document."""
    return JobView(
        id=record.id,
        queue=record.queue,
        task=record.task,
        state=record.state.value,
        priority=record.priority,
        lane=record.lane,
        failures=record.failures,
        stalls=record.stalls,
        starts=record.starts,
        created_at=instant(record.created_ms),
        changed_at=instant(record.changed_ms),
        due_at=instant(record.due_ms),
        expires_at=instant(record.expires_ms),
        run_ms=record.run_ms if record.state.is_terminal and record.starts else None,
        incarnation=record.incarnation or None,
        cancel_requested=record.cancel_requested,
        reason=record.reason or None,
        progress=record.progress,
        progress_text=record.progress_text or None,
        options=raw(record.options),
        args=raw(record.payload),
        result=raw(record.result),
        errors=[
            ErrorView(
                start=error.start,
                at=instant(error.at_ms),
                type=error.type,
                message=error.message,
                traceback=error.traceback,
            )
            for error in record.errors
        ],
    )


def job_line(queue: str, row: JobRow) -> JobLine:
    """Return a listed job."""
    return JobLine(
        id=row.id,
        queue=queue,
        task=row.task,
        state=row.state.value,
        priority=row.priority,
        failures=row.failures,
        stalls=row.stalls,
        starts=row.starts,
        created_at=instant(row.created_ms),
        changed_at=instant(row.changed_ms),
        due_at=instant(row.due_ms),
        run_ms=row.run_ms if row.state.is_terminal and row.starts else None,
        incarnation=row.incarnation or None,
        reason=row.reason or None,
        error=row.error or None,
    )

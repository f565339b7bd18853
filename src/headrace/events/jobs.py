"""The transitions of jobs, as the event streams of queues keep them."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class JobEventKind(StrEnum):
    """The transitions of a job."""

    QUEUED = "queued"
    SCHEDULED = "scheduled"
    ACTIVE = "active"
    RETRYING = "retrying"
    SNOOZED = "snoozed"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    STALLED = "stalled"
    PUT_BACK = "put_back"
    PROGRESS = "progress"


class EventRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One transition, as the queue's event stream keeps it.

    ``wait_ms`` is set on ``active``, ``run_ms`` where an attempt ended. ``detail`` is the error's
    type, the reason of a dead letter or a snooze, or of ``progress`` the fraction, a space and the
    text.
    """

    stream_id: str
    at_ms: int
    kind: JobEventKind
    job_id: str
    task: str
    start: int
    incarnation: str
    wait_ms: int
    run_ms: int
    detail: str

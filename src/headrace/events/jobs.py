"""What happened to jobs and to those who run them, as the event streams of queues keep it."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class JobEventKind(StrEnum):
    """The transitions of a job, and those of the incarnations that run jobs."""

    QUEUED = "queued"
    SCHEDULED = "scheduled"
    BLOCKED = "blocked"
    UPDATED = "updated"
    ACTIVE = "active"
    RETRYING = "retrying"
    SNOOZED = "snoozed"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    STALLED = "stalled"
    PUT_BACK = "put_back"
    PURGED = "purged"
    PROGRESS = "progress"
    JOINED = "joined"
    LEFT = "left"

    @property
    def is_of_job(self) -> bool:
        """Whether a job's, not an incarnation's."""
        return self not in (JobEventKind.JOINED, JobEventKind.LEFT)


class EventRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One event, as the queue's event stream keeps it; a field is empty where it does not apply.

    Of an incarnation that has joined or left, ``job_id`` and ``incarnation`` are its own.

    Attributes:
        stream_id: of its entry, which several events share.
        number: its own in the queue, rising by one an event; 0 where that is not known.
        at_ms: when it happened.
        kind: what happened.
        job_id: of the job.
        task: of the job.
        start: which start of the job this was, or the last before; 0 before the first.
        incarnation: that ran the job.
        wait_ms: how long it had waited, on ``active``.
        run_ms: how long an attempt ran, where one ended.
        detail: the reason of a dead letter, a cancelled job, a snooze or a job that was put back,
            ``next`` of one that was cancelled while it was blocked; why a job was queued: ``due``,
            ``redriven``, ``admitted`` by a limit, or ``next``; ``next`` on ``scheduled``, too,
            where it was blocked by the one of its id that has ended; the limit that a job is
            ``blocked`` by, and the key, a space between; the state in which one was purged; the
            error's type on ``retrying`` and ``stalled``; ``retired`` or ``reaped`` on ``left``; the
            fraction, a space and the text on ``progress``.
        error: the qualified name of the exception's type.
        message: the first 200 characters of what it said, in one line.
        frame: ``file:line in name`` of the innermost frame of its traceback.
        due_ms: when the job is due, where it waits for a time.
        created_ms: when the job was created, where it has ended or was purged.
        worker: the name of the worker that has joined or left.
        host: its host.
        version: the release of headrace that it runs.
        app_version: the user's own, ``Worker(version=…)``.
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
    number: int = 0
    error: str = ""
    message: str = ""
    frame: str = ""
    due_ms: int = 0
    created_ms: int = 0
    worker: str = ""
    host: str = ""
    version: str = ""
    app_version: str = ""

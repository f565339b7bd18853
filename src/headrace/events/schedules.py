"""What happened to schedules, and to those who fire them."""

from __future__ import annotations

import msgspec


class SchedulerStarted(msgspec.Struct, frozen=True, kw_only=True):
    """A scheduler that runs without a worker begins; ``app`` is "" if it declares nothing."""

    scheduler: str
    app: str


class SchedulerStopped(msgspec.Struct, frozen=True, kw_only=True):
    """A scheduler that runs without a worker has ended."""

    scheduler: str


class SchedulerMissing(msgspec.Struct, frozen=True, kw_only=True):
    """The storage keeps no schedules, so the worker runs without a scheduler."""

    worker: str
    storage: str


class ScheduleFired(msgspec.Struct, frozen=True, kw_only=True):
    """The job of an occurrence was enqueued, or was there already.

    Attributes:
        schedule: its id.
        job_id: of the occurrence's job.
        queue: of the job.
        outcome: ``enqueued`` or ``duplicate``.
        late_ms: how long after the instant at which it was due, by the storage's clock.
    """

    schedule: str
    job_id: str
    queue: str
    outcome: str
    late_ms: int


class ScheduleSkipped(msgspec.Struct, frozen=True, kw_only=True):
    """Occurrences were passed over, for what ``reason`` says; not told of a paused schedule.

    ``since_ms`` is the instant of the first, ``until_ms`` that of the last. ``count`` is 0 where
    they were too many to count.
    """

    schedule: str
    reason: str
    count: int
    since_ms: int
    until_ms: int


class ScheduleFailed(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule can't be fired: as its storage has it, it stays. Said once for each change of it.

    It may come from a newer release, or need a time zone that is not installed here.
    """

    schedule: str
    error: str


class ScheduleConflict(msgspec.Struct, frozen=True, kw_only=True):
    """An app declares a schedule whose id is taken, by another app or, ``owner`` "", by none.

    It is left as it is. Said once for each id.
    """

    schedule: str
    app: str
    owner: str


class SchedulesSynced(msgspec.Struct, frozen=True, kw_only=True):
    """The stored schedules of an app are as this release declares them.

    Attributes:
        app: its name.
        declared: how many it declares.
        added: how many were not there.
        changed: how many were declared otherwise.
        deleted: how many it declares no more.
    """

    app: str
    declared: int
    added: int
    changed: int
    deleted: int


class SchedulesHeldUp(msgspec.Struct, frozen=True, kw_only=True):
    """The storage has no room for the jobs of schedules; it is tried again until it has."""

    error: str

"""What goes into the verbs of the `Scheduler` role and comes out of them."""

from __future__ import annotations

import secrets

import msgspec

from headrace.request import JobRequest


class StoredSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as a storage keeps it.

    Attributes:
        id: unique in its tenant, 1 to 200 bytes of UTF-8 without control characters.
        app: the app that declared it, "" if none did.
        version: counts its writes, from the `ScheduleWrite.first_version` of the one that made it.
        due_ms: when a scheduler is to look at it.
        body: all that only schedulers and their users know of it.
    """

    id: str
    app: str
    version: int
    due_ms: int
    body: bytes


_VERSION_BITS = 46
"""Of a first version: it has 14 digits then, which leaves room to count in 15."""


def _any_version() -> int:
    return 1 + secrets.randbits(_VERSION_BITS)


class ScheduleWrite(msgspec.Struct, frozen=True, kw_only=True):
    """A change of one schedule, made only if nobody has changed it since it was read.

    Attributes:
        id: which.
        expected: the version that was read, 0: there is none.
        app: as in `StoredSchedule`.
        due_ms: as in `StoredSchedule`.
        body: as in `StoredSchedule`; None: delete the schedule and its history.
        history: entries to add to its history, oldest first.
        first_version: the version of a schedule that this makes, 1 to 10**14. Drawn at random, so
            that a write that was meant for a schedule that was deleted since is not made to
            another one that was given its id.
    """

    id: str
    expected: int
    app: str = ""
    due_ms: int = 0
    body: bytes | None = None
    history: tuple[bytes, ...] = ()
    first_version: int = msgspec.field(default_factory=_any_version)


class ScheduleRead(msgspec.Struct, frozen=True):
    """Some schedules as they are at an instant, by the storage's clock."""

    now_ms: int
    schedules: list[StoredSchedule]


class SchedulePage(msgspec.Struct, frozen=True):
    """Some schedules in the order of their ids, and the cursor of the next page: "" at the end."""

    now_ms: int
    schedules: list[StoredSchedule]
    cursor: str


class TakenSchedules(msgspec.Struct, frozen=True):
    """What is due now, by the storage's clock.

    Attributes:
        now_ms: the instant.
        schedules: which are due, those that have been due for longest first. One that was held
            counts from the end of its hold.
        next_ms: how long until the next falls due or is no longer held; None: there is none.
    """

    now_ms: int
    schedules: list[StoredSchedule]
    next_ms: int | None


class Occurrence(msgspec.Struct, frozen=True):
    """One due instant of a schedule, and the job that it is to bring."""

    schedule_id: str
    instant_ms: int
    job: JobRequest


class ReleaseStanding(msgspec.Struct, frozen=True):
    """What one release of an app is among those that run.

    Attributes:
        is_newest: no newer one is alive.
        alive: the digests of those that are alive, this one among them, sorted.
        is_new: the storage did not know it. To a release that has joined before, this says that the
            storage has lost what it knew.
    """

    is_newest: bool
    alive: list[str]
    is_new: bool

"""The role of what keeps schedules, and brings in the jobs of their occurrences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headrace.job import EnqueueOutcome
from headrace.storage.limits import SCHEDULES_PAGE_LIMIT
from headrace.storage.schedules import (
    Occurrence,
    ReleaseStanding,
    SchedulePage,
    ScheduleRead,
    ScheduleWrite,
    TakenSchedules,
)
from headrace.storage.verbs import reads, writes


class Scheduler(Protocol):
    """Schedules are the tenant's, not a queue's; only `fire` works on a queue.

    A schedule is a versioned record with the instant at which a scheduler is to look at it. What it
    says is known to schedulers alone, any number of which may run: each change is made only if the
    record is still the one that was read.
    """

    @reads
    async def read_schedules(self, ids: Sequence[str]) -> ScheduleRead:
        """Return those of these schedules that are there, in the order of ``ids``."""

    @reads
    async def list_schedules(
        self, *, app: str | None = None, cursor: str = "", limit: int = SCHEDULES_PAGE_LIMIT
    ) -> SchedulePage:
        """Return a page of the schedules, sorted by the bytes of their ids.

        One that stays is listed once, however many others come and go.

        Args:
            app: only those that this app declared.
            cursor: what the last page said, "" for the first.
            limit: most schedules, 1 to `SCHEDULES_PAGE_LIMIT`; more is taken for that. A page ends
                early where its bodies come to `BATCH_LIMIT_BYTES`.
        """

    @reads
    async def schedule_history(self, schedule_id: str) -> list[bytes]:
        """Return the newest `SCHEDULE_HISTORY` entries of a schedule's history, newest first."""

    @writes(grows=True)
    async def write_schedules(
        self, writes: Sequence[ScheduleWrite], *, wakes: bool
    ) -> list[int | None]:
        """Make changes of schedules, each by itself, and return the new versions, in order.

        None says that the schedule is not the one that was expected, and was not changed; 0 that it
        is deleted. A deleted schedule takes its history along; the marks of `fire` stay. Versions
        count up from the `ScheduleWrite.first_version` of the write that makes a schedule.

        Args:
            writes: at most `BATCH_LIMIT`, of different schedules.
            wakes: where the first due instant has come forward, tell the channels that were named
                by `take_schedules` within `SCHEDULES_HEARD_MS`, at most `CHANNELS_LIMIT` of them:
                an `End` with queue "", id "" and state None.

        Raises:
            TooManySchedules: there would be more than `SCHEDULES_LIMIT`; nothing was changed.
            StorageFull: there is no room; nothing was changed.
        """

    @writes(is_durable=False)
    async def take_schedules(
        self, *, limit: int, hold_ms: int, channel: str = ""
    ) -> TakenSchedules:
        """Return schedules that are due, and hand none of them out again for ``hold_ms``.

        A write ends the hold of its schedule. The hold spares other schedulers work; nothing may
        rest on it.

        Args:
            limit: most schedules, 1 to `BATCH_LIMIT`; bodies of at most `BATCH_LIMIT_BYTES`.
            hold_ms: at least 1.
            channel: is told when another write brings the first due instant forward, see
                `write_schedules`; "" for none.
        """

    @writes(grows=True)
    async def fire(
        self, queue: str, occurrences: Sequence[Occurrence], *, until_ms: int
    ) -> list[EnqueueOutcome] | None:
        """Store the jobs of occurrences, all or none, and return an outcome for each, in order.

        The last instant of each schedule that was fired in this queue is kept for
        `FIRED_TTL_MS` at least. An occurrence that is not later than that is a ``duplicate`` and
        changes nothing, whatever became of its job. Any other is stored as `Producer.enqueue` does,
        and its instant becomes the last. So a schedule's occurrences are fired in order, and
        repeating a call, or making it from two schedulers, brings no second job.

        Args:
            queue: the queue of all their jobs.
            occurrences: at most `BATCH_LIMIT`, with payloads of at most `BATCH_LIMIT_BYTES`.
            until_ms: if the storage's clock is past it, nothing is changed and the answer is None:
                the caller has stood still, and others may have gone on.

        Raises:
            StorageFull: there is no room; nothing was stored.
            QueueFull: the queue's ``max_length`` is reached; nothing was stored. While fewer wait,
                all occurrences are let in.
        """

    @writes(is_durable=False)
    async def join_release(self, app: str, digest: str, *, alive_ms: int) -> ReleaseStanding:
        """Say that a release of an app runs, and return how it stands among the others.

        Releases are ordered by when they first came. One that comes again while no newer one is
        alive becomes the newest: that is a roll-back. A release is forgotten `RELEASES_TTL_MS`
        after it was last heard of.

        Args:
            app: the app's name.
            digest: the release's.
            alive_ms: another release is alive if it has joined within so many milliseconds; if a
                process of it has left since, within `RELEASE_LEFT_MS` at most.
        """

    @writes(is_durable=False)
    async def leave_release(self, app: str, digest: str) -> None:
        """Say that a process of a release has ended.

        Its other processes have `RELEASE_LEFT_MS` after the last join to join again; else it is
        alive no more.
        """

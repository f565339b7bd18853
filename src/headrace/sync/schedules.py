"""The stored schedules of a tenant, from code without an event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Unpack

from headrace.job import Job
from headrace.options import spelled_out
from headrace.policy import SchedulePolicy, check_schedule_id
from headrace.schedule_records import ScheduleStorage, note_trigger, triggered_job
from headrace.schedules import KeptSchedules
from headrace.storage.base import check_keeps_schedules
from headrace.storage.steps import at_once
from headrace.sync.handle import SyncJobHandle
from headrace.sync.queue import each
from headrace.timing import Timing
from headrace.views.schedules import Schedule, ScheduleEvent


class SyncSchedules:
    """The schedules that a tenant's storage keeps; each method is that of `Schedules`, and blocks.

    Made by `SyncApp.schedules`.
    """

    def __init__(
        self,
        schedules: KeptSchedules,
        storage: Callable[[], ScheduleStorage],
        submit: Callable[[Job], SyncJobHandle[Any]],
    ) -> None:
        self._schedules = schedules
        self._storage = storage
        self._submit = submit

    def __repr__(self) -> str:
        return "<SyncSchedules>"

    @spelled_out(SchedulePolicy)
    def put(
        self,
        schedule_id: str,
        job: Job,
        timing: Timing,
        *,
        paused: bool | None = None,
        **policy: Unpack[SchedulePolicy],
    ) -> Schedule:
        """Store a schedule, in place of the one of its id if there is one, see `Schedules.put`.

        Args:
            schedule_id: unique in the tenant, 1 to 200 bytes without control characters.
            job: what each occurrence enqueues.
            timing: a `Cron`, `Every` or `At`.
            paused: whether its occurrences are passed over.
            **policy: see `SchedulePolicy`.

        Raises:
            UsageError, TooManySchedules: as `Schedules.put`.
        """
        return at_once(self._schedules.put(schedule_id, job, timing, paused=paused, **policy))

    def get(self, schedule_id: str) -> Schedule | None:
        """Return a schedule, None if there is none of that id."""
        return at_once(self._schedules.get(schedule_id))

    def history(self, schedule_id: str) -> Sequence[ScheduleEvent]:
        """Return what happened at its newest occurrences, see `Schedules.history`."""
        return at_once(self._schedules.history(schedule_id))

    def list(self, *, app: str | None = None) -> Iterator[Schedule]:
        """Yield the schedules by their ids, page by page, see `Schedules.list`.

        Args:
            app: only those that the app of this name declares; default: all.
        """
        return each(self._schedules.list(app=app))

    def pause(self, schedule_id: str) -> Schedule:
        """Have its occurrences passed over until `resume`, see `Schedules.pause`.

        Raises:
            ScheduleNotFound: there is none of that id.
        """
        return at_once(self._schedules.pause(schedule_id))

    def resume(self, schedule_id: str) -> Schedule:
        """Have its occurrences fired again from the next one on; returns it. Safe to repeat.

        Raises:
            ScheduleNotFound: there is none of that id.
        """
        return at_once(self._schedules.resume(schedule_id))

    def trigger(self, schedule_id: str) -> SyncJobHandle[Any]:
        """Enqueue its job now, whether it is due or paused, see `Schedules.trigger`.

        Raises:
            ScheduleNotFound: there is none of that id.
        """
        schedule_id = check_schedule_id(schedule_id)
        storage = self._storage()
        check_keeps_schedules(storage)
        handle = self._submit(at_once(triggered_job(storage, schedule_id)))
        at_once(note_trigger(storage, schedule_id, handle.id))
        return handle

    def delete(self, schedule_id: str) -> bool:
        """Delete a schedule and its history, see `Schedules.delete`; whether there was one."""
        return at_once(self._schedules.delete(schedule_id))

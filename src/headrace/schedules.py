"""The stored schedules of a tenant: put, looked at, steered; made by `App.schedules`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Unpack

from headrace.clock import WallClock
from headrace.handle import JobHandle
from headrace.job import Job, check_text
from headrace.occurrences import job_body
from headrace.options import spelled_out
from headrace.policy import (
    SchedulePolicy,
    check_body,
    check_schedule_id,
    check_timing,
    check_to_come,
    policy_fields,
)
from headrace.schedule import CLOCKS_DIFFER_MS, ScheduleBody, decode_entry
from headrace.schedule_records import (
    ScheduleRecord,
    ScheduleStorage,
    all_schedules,
    delete_schedule,
    find_schedule,
    note_trigger,
    pause_schedule,
    put_schedule,
    resume_schedule,
    triggered_job,
)
from headrace.settings import check_flag
from headrace.storage.base import check_keeps_schedules
from headrace.task import Task
from headrace.timing import Timing
from headrace.views.schedules import Schedule, ScheduleEvent


class KeptSchedules:
    """The schedules that a tenant's storage keeps, whoever has made them; sends no job."""

    def __init__(
        self,
        storage: Callable[[], ScheduleStorage],
        *,
        tasks: Mapping[str, Task[..., Any]],
        decode: Callable[[bytes], Any],
        clock: WallClock,
    ) -> None:
        self._open = storage
        self._tasks = tasks
        self._decode = decode
        self._clock = clock

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    @spelled_out(SchedulePolicy)
    async def put(
        self,
        schedule_id: str,
        job: Job,
        timing: Timing,
        *,
        paused: bool | None = None,
        **policy: Unpack[SchedulePolicy],
    ) -> Schedule:
        """Store a schedule, in place of the one of its id if there is one.

        What is not said is as for a new one. One that takes another's place keeps its history; an
        occurrence that is due already and not fired yet stays if the new timing has it. It counts
        as set by an operator, so that it outlasts deploys of code that declares it, until what the
        code declares changes. To put what is there already changes nothing.

        Functions registered by `App.before_enqueue` are not called with the jobs of schedules.

        Args:
            schedule_id: unique in the tenant, 1 to 200 bytes without control characters.
            job: what each occurrence enqueues, made by ``task.job(...)`` or
                ``app.task_ref(name, queue=...).job(...)``, without ``id``, ``delay``, ``run_at``
                and an instant for ``expires``.
            timing: a `Cron`, `Every` or `At`.
            paused: whether its occurrences are passed over. Default: as it is, and a new one's are
                not.
            **policy: see `SchedulePolicy`.

        Returns:
            What is stored now.

        Raises:
            InvalidOption: the id, the timing or an option is not valid, or there is no occurrence
                to come, as of an `At` that has passed by a minute on this machine's clock.
            InvalidArguments: the arguments are not of the types of the task's signature.
            UsageError: what is passed is no job. All of these before any I/O.
            TooManySchedules: the tenant has 100,000.
        """
        schedule_id = check_schedule_id(schedule_id)
        fields = policy_fields(policy, taker="Schedules.put")
        made = job_body(job, self._tasks)
        wanted = check_body(ScheduleBody(job=made, timing=check_timing(timing), **fields))
        check_to_come(schedule_id, wanted, tolerance_ms=CLOCKS_DIFFER_MS, clock=self._clock)
        is_paused = None if paused is None else check_flag(paused, name="paused")
        return self._view(
            await put_schedule(self._storage(), schedule_id, wanted, is_paused=is_paused)
        )

    async def get(self, schedule_id: str) -> Schedule | None:
        """Return a schedule, None if there is none of that id."""
        found = await find_schedule(self._storage(), check_schedule_id(schedule_id))
        return None if found is None else self._view(found)

    async def history(self, schedule_id: str) -> Sequence[ScheduleEvent]:
        """Return what happened at its newest occurrences, newest first: 100 entries at most.

        One of an id that is not there is empty.
        """
        entries = await self._storage().schedule_history(check_schedule_id(schedule_id))
        return [ScheduleEvent.of(decode_entry(entry)) for entry in entries]

    async def list(self, *, app: str | None = None) -> AsyncIterator[Schedule]:
        """Yield the schedules by their ids, page by page: ``async for each in schedules.list()``.

        Those that a newer release of headrace has stored, and this one can't read, are left out.

        Args:
            app: only those that the app of this name declares; default: all.
        """
        app = None if app is None else check_text(app, what="app name")
        async for record in all_schedules(self._storage(), app=app):
            yield self._view(record)

    async def pause(self, schedule_id: str) -> Schedule:
        """Have its occurrences passed over until `resume`; returns it. Safe to repeat.

        Raises:
            ScheduleNotFound: there is none of that id.
        """
        return self._view(await pause_schedule(self._storage(), check_schedule_id(schedule_id)))

    async def resume(self, schedule_id: str) -> Schedule:
        """Have its occurrences fired again from the next one on; returns it. Safe to repeat.

        Raises:
            ScheduleNotFound: there is none of that id.
        """
        return self._view(await resume_schedule(self._storage(), check_schedule_id(schedule_id)))

    async def delete(self, schedule_id: str) -> bool:
        """Delete a schedule and its history; return whether there was one. Its jobs stay.

        One that code declares comes back with the next worker that starts.
        """
        return await delete_schedule(self._storage(), check_schedule_id(schedule_id))

    def _storage(self) -> ScheduleStorage:
        storage = self._open()
        check_keeps_schedules(storage)
        return storage

    def _view(self, record: ScheduleRecord) -> Schedule:
        return Schedule.of(record.id, record.app, record.body, self._decode)


class Schedules(KeptSchedules):
    """The schedules that a tenant's storage keeps, whoever has made them.

    Any worker or scheduler of the tenant fires them. All methods may raise `StorageError`, and
    `InvalidOption` for what can't be an id; before any I/O `StorageRefused`, where a storage of
    another distribution keeps no schedules. Changes are whole or not made, and nobody's gets lost
    when several come at once.
    """

    def __init__(
        self,
        storage: Callable[[], ScheduleStorage],
        *,
        tasks: Mapping[str, Task[..., Any]],
        decode: Callable[[bytes], Any],
        submit: Callable[[Job], Awaitable[JobHandle[Any]]],
        clock: WallClock,
    ) -> None:
        super().__init__(storage, tasks=tasks, decode=decode, clock=clock)
        self._submit = submit

    async def trigger(self, schedule_id: str) -> JobHandle[Any]:
        """Enqueue its job now, whether it is due or paused, and return the job's handle.

        Its occurrences come as before. The job's id is ``<schedule>:triggered:`` and a ULID.

        Raises:
            ScheduleNotFound: there is none of that id.
        """
        schedule_id = check_schedule_id(schedule_id)
        handle = await self._submit(await triggered_job(self._storage(), schedule_id))
        await note_trigger(self._storage(), schedule_id, handle.id)
        return handle

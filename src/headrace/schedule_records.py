"""Schedules as they are stored: read, and changed only if nobody else has meanwhile."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from typing import Protocol

import msgspec
from msgspec.structs import replace

from headrace.errors import ScheduleNotFound, StorageFault, StorageUnavailable
from headrace.job import new_job_id
from headrace.plain import cut, shown
from headrace.planning import plan
from headrace.request import JobRequest
from headrace.schedule import HistoryEntry, ScheduleBody, decode_body, encode_body, encode_entry
from headrace.storage.base import Producer, Scheduler
from headrace.storage.schedules import ScheduleWrite, StoredSchedule
from headrace.storage.values import CallId

TRIES = 50
"""How often a change is tried while others change the schedule between its read and its write."""


class ScheduleStorage(Producer, Scheduler, Protocol):
    """What schedules are looked at and steered through."""


class ScheduleRecord(msgspec.Struct, frozen=True):
    """What is stored of one schedule.

    Attributes:
        id: its id.
        app: the app that declared it, "" if none did.
        body: what it says.
    """

    id: str
    app: str
    body: ScheduleBody


class ScheduleChange(msgspec.Struct, frozen=True):
    """What becomes of a schedule.

    Attributes:
        body: what it is to say.
        history: entries to add to its history, oldest first.
    """

    body: ScheduleBody
    history: tuple[HistoryEntry, ...] = ()


Edit = Callable[[ScheduleBody | None, int], ScheduleChange | None]
"""From what is stored, None if nothing is, and the storage's clock to what is to be.

None leaves all as it is. It may be called several times.
"""


async def find_schedule(storage: Scheduler, schedule_id: str) -> ScheduleRecord | None:
    """Return a schedule, None if there is none of that id.

    Raises:
        StorageFault: another release has stored it, which this one can't read.
        StorageError: the storage can't be reached.
    """
    found = await storage.read_schedules([schedule_id])
    return _record(found.schedules[0]) if found.schedules else None


async def known_schedule(storage: Scheduler, schedule_id: str) -> ScheduleRecord:
    """Return a schedule.

    Raises:
        ScheduleNotFound: there is none of that id.
        StorageError: as `find_schedule`.
    """
    found = await find_schedule(storage, schedule_id)
    if found is None:
        raise _not_found(schedule_id)
    return found


async def all_schedules(
    storage: Scheduler, *, app: str | None = None
) -> AsyncIterator[ScheduleRecord]:
    """Yield all schedules by their ids, page by page, but for those that can't be read here.

    Args:
        storage: where they are.
        app: only those that this app declared.
    """
    cursor = ""
    while True:
        page = await storage.list_schedules(app=app, cursor=cursor)
        for stored in page.schedules:
            try:
                record = _record(stored)
            except StorageFault:  # a newer release's; that one lists it
                continue
            yield record
        cursor = page.cursor
        if not cursor:
            return


async def change_schedule(
    storage: Scheduler, schedule_id: str, edit: Edit
) -> ScheduleRecord | None:
    """Change a schedule, or make one, and return what is stored then; None if there is none.

    Nobody's change gets lost: if another one comes between, ``edit`` is asked again.

    Raises:
        StorageUnavailable: others change it all the time; nothing was changed.
        StorageError: as `find_schedule`, or the storage is full.
    """
    for _ in range(TRIES):
        read = await storage.read_schedules([schedule_id])
        stored = read.schedules[0] if read.schedules else None
        before = None if stored is None else _record(stored)
        change = edit(None if before is None else before.body, read.now_ms)
        if change is None:
            return before
        write = ScheduleWrite(
            id=schedule_id,
            expected=0 if stored is None else stored.version,
            app="" if stored is None else stored.app,
            due_ms=change.body.due_ms(schedule_id, read.now_ms),
            body=encode_body(change.body),
            history=tuple(map(encode_entry, change.history)),
        )
        [version] = await storage.write_schedules([write], wakes=True)
        if version is not None:
            return ScheduleRecord(schedule_id, write.app, change.body)
    raise _contended(schedule_id)


async def put_schedule(
    storage: Scheduler, schedule_id: str, wanted: ScheduleBody, *, is_paused: bool | None
) -> ScheduleRecord:
    """Store a schedule, in place of one of its id.

    Args:
        storage: where to.
        schedule_id: its id.
        wanted: what it says, but for its past.
        is_paused: None leaves it as it is.

    Raises:
        TooManySchedules: the tenant has as many as it may have.
        StorageError: as `change_schedule`.
    """

    def edit(before: ScheduleBody | None, now_ms: int) -> ScheduleChange | None:
        asked = wanted
        if before is not None:
            asked = replace(
                wanted,
                is_paused=before.is_paused,
                declaration=before.declaration,
                release=before.release,
            )
        if is_paused is not None:
            asked = replace(asked, is_paused=is_paused)
        made = asked.in_place_of(before, now_ms)
        is_same = before is not None and replace(made, changed_ms=before.changed_ms) == before
        return None if is_same else ScheduleChange(made)

    return _known(schedule_id, await change_schedule(storage, schedule_id, edit))


async def pause_schedule(storage: Scheduler, schedule_id: str) -> ScheduleRecord:
    """Have schedulers pass its occurrences over; one that is paused stays as it is.

    Raises:
        ScheduleNotFound: there is none of that id.
        StorageError: as `change_schedule`.
    """

    def edit(before: ScheduleBody | None, now_ms: int) -> ScheduleChange | None:
        if before is None or before.is_paused:
            return None
        return ScheduleChange(replace(before, is_paused=True, set_by="operator", changed_ms=now_ms))

    return _known(schedule_id, await change_schedule(storage, schedule_id, edit))


async def resume_schedule(storage: Scheduler, schedule_id: str) -> ScheduleRecord:
    """Have its occurrences fired again, from the next one on; one that is not paused stays so.

    Those that fell due meanwhile are passed over, also where no scheduler has looked at them.

    Raises:
        ScheduleNotFound: there is none of that id.
        StorageError: as `change_schedule`.
    """

    def edit(before: ScheduleBody | None, now_ms: int) -> ScheduleChange | None:
        if before is None or not before.is_paused:
            return None
        found = plan(before, schedule_id, now_ms)
        after = replace(
            before,
            is_paused=False,
            next_ms=found.next_ms,
            set_by="operator",
            changed_ms=now_ms,
        )
        return ScheduleChange(after, found.passed)

    return _known(schedule_id, await change_schedule(storage, schedule_id, edit))


async def trigger_schedule(storage: ScheduleStorage, schedule_id: str) -> JobRequest:
    """Enqueue a schedule's job at once, also of a paused one, and return what was enqueued.

    Raises:
        ScheduleNotFound: there is none of that id.
        StorageError: as `change_schedule`.
    """
    request = await triggered_job(storage, schedule_id)
    call = CallId(secrets.token_hex(8), 1)
    await storage.enqueue(request.queue, [request], call=call)
    await note_trigger(storage, schedule_id, request.id)
    return request


async def triggered_job(storage: Scheduler, schedule_id: str) -> JobRequest:
    """Return the job that is to be enqueued when a schedule is triggered.

    Raises:
        ScheduleNotFound: there is none of that id.
        StorageError: as `find_schedule`.
    """
    record = await known_schedule(storage, schedule_id)
    return record.body.job.request(f"{schedule_id}:triggered:{new_job_id()}")


async def note_trigger(storage: Scheduler, schedule_id: str, job_id: str) -> None:
    """Keep in a schedule's history that its job was enqueued, if it is still there.

    Raises:
        StorageError: as `change_schedule`.
    """

    def edit(before: ScheduleBody | None, now_ms: int) -> ScheduleChange | None:
        if before is None:  # deleted meanwhile; the job was asked for before
            return None
        entry = HistoryEntry(instant_ms=now_ms, fired_ms=now_ms, outcome="triggered", job_id=job_id)
        return ScheduleChange(replace(before, last_ms=now_ms, last_job_id=job_id), (entry,))

    await change_schedule(storage, schedule_id, edit)


async def delete_schedule(storage: Scheduler, schedule_id: str) -> bool:
    """Delete a schedule and its history; return whether there was one.

    Raises:
        StorageUnavailable: others change it all the time; it is still there.
        StorageError: the storage can't be reached.
    """
    for _ in range(TRIES):
        read = await storage.read_schedules([schedule_id])
        if not read.schedules:
            return False
        write = ScheduleWrite(id=schedule_id, expected=read.schedules[0].version)
        [version] = await storage.write_schedules([write], wakes=False)
        if version is not None:
            return True
    raise _contended(schedule_id)


def _record(stored: StoredSchedule) -> ScheduleRecord:
    try:
        return ScheduleRecord(stored.id, stored.app, decode_body(stored.body))
    except (msgspec.MsgspecError, ValueError) as error:
        raise StorageFault(
            f"schedule {shown(stored.id)} can't be read by this release ({cut(str(error))}): use "
            "the one that has stored it, or delete it"
        ) from error


def _known(schedule_id: str, record: ScheduleRecord | None) -> ScheduleRecord:
    if record is None:
        raise _not_found(schedule_id)
    return record


def _not_found(schedule_id: str) -> ScheduleNotFound:
    return ScheduleNotFound(
        f"there is no schedule {shown(schedule_id)}: it never was, was deleted, or ended a week ago"
    )


def _contended(schedule_id: str) -> StorageUnavailable:
    return StorageUnavailable(
        f"schedule {shown(schedule_id)} was changed by others {TRIES} times while it was to be "
        "changed: nothing was done, try again"
    )

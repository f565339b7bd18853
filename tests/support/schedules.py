"""Schedules as tests store and look at them, below the app."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from headrace.job import DEFAULT_KEEP_MS, DEFAULT_LANE, DEFAULT_MAX_STALLS, DEFAULT_PRIORITY
from headrace.schedule import (
    HistoryEntry,
    JobBody,
    ScheduleBody,
    decode_body,
    decode_entry,
    encode_body,
)
from headrace.storage import ScheduleWrite, Storage
from headrace.timing import Timing

QUEUE = "reports"

JOB = JobBody(
    task="report",
    queue=QUEUE,
    payload=b"{}",
    priority=DEFAULT_PRIORITY,
    max_stalls=DEFAULT_MAX_STALLS,
    keep_ms=DEFAULT_KEEP_MS,
    lane=DEFAULT_LANE,
    expires_in_ms=0,
    options=b"",
)


async def now_of(storage: Storage) -> int:
    """Return the time by a storage's clock."""
    return (await storage.read_schedules([])).now_ms


async def put(
    storage: Storage,
    schedule_id: str,
    timing: Timing,
    *,
    app: str = "",
    wakes: bool = True,
    **fields: Any,
) -> ScheduleBody:
    """Store a new schedule whose occurrences are those from now on, or what ``fields`` say."""
    now_ms = await now_of(storage)
    body = ScheduleBody(job=JOB, timing=timing).in_place_of(None, now_ms)
    body = replace(body, **fields)
    await write(storage, schedule_id, body, expected=0, app=app, wakes=wakes)
    return body


async def write(
    storage: Storage,
    schedule_id: str,
    body: ScheduleBody,
    *,
    expected: int,
    app: str = "",
    wakes: bool = True,
) -> None:
    """Store a schedule in place of one version of it."""
    now_ms = await now_of(storage)
    change = ScheduleWrite(
        id=schedule_id,
        expected=expected,
        app=app,
        due_ms=body.due_ms(schedule_id, now_ms),
        body=encode_body(body),
    )
    [version] = await storage.write_schedules([change], wakes=wakes)
    assert version


async def edit(storage: Storage, schedule_id: str, **fields: Any) -> None:
    """Change a stored schedule."""
    [stored] = (await storage.read_schedules([schedule_id])).schedules
    body = replace(decode_body(stored.body), **fields)
    await write(storage, schedule_id, body, expected=stored.version, app=stored.app)


async def stored(storage: Storage, schedule_id: str) -> ScheduleBody | None:
    """Return a schedule as it is, None if there is none."""
    found = (await storage.read_schedules([schedule_id])).schedules
    return decode_body(found[0].body) if found else None


async def history(storage: Storage, schedule_id: str) -> list[HistoryEntry]:
    """Return what happened to a schedule, the oldest first."""
    return [decode_entry(entry) for entry in await storage.schedule_history(schedule_id)][::-1]

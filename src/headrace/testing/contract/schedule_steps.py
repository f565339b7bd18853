"""The steps of which the contract tests of schedules are made."""

from __future__ import annotations

from typing import Any

from headrace.storage import (
    BATCH_LIMIT,
    EnqueueOutcome,
    Occurrence,
    ScheduleWrite,
    Storage,
    StoredSchedule,
    TakenSchedules,
)
from headrace.testing.contract.steps import DAY_MS, QUEUE, a_job

NEIGHBOUR = "neighbour"
HOLD_MS = 5_000
LATER_MS = 4_000_000_000_000
"""An instant of the year 2096: not due."""
STRANGE_ID = "é/ü: a {b} [1]*? 😀"


def a_schedule(schedule_id: str = "s", **changes: Any) -> ScheduleWrite:
    """Return a write that makes a schedule, due at once; with ``expected`` one that changes it."""
    made = {"id": schedule_id, "expected": 0, "body": b"body", "first_version": 1}
    return ScheduleWrite(**{**made, **changes})


def deletion(schedule_id: str = "s", *, expected: int = 1) -> ScheduleWrite:
    """Return a write that deletes a schedule."""
    return ScheduleWrite(id=schedule_id, expected=expected)


async def write(storage: Storage, *writes: ScheduleWrite, wakes: bool = False) -> list[int | None]:
    """Write in one call."""
    return await storage.write_schedules(writes, wakes=wakes)


async def put(storage: Storage, schedule_id: str = "s", **changes: Any) -> None:
    """Make a schedule that is not there, or change it."""
    [version] = await write(storage, a_schedule(schedule_id, **changes))
    assert version


async def read(storage: Storage, schedule_id: str = "s") -> StoredSchedule | None:
    """Return a schedule if it is there."""
    found = (await storage.read_schedules([schedule_id])).schedules
    return found[0] if found else None


async def take(
    storage: Storage, *, limit: int = BATCH_LIMIT, hold_ms: int = HOLD_MS, channel: str = ""
) -> TakenSchedules:
    """Take what is due."""
    return await storage.take_schedules(limit=limit, hold_ms=hold_ms, channel=channel)


def names(schedules: list[StoredSchedule]) -> list[str]:
    """Return the ids of schedules, in order."""
    return [schedule.id for schedule in schedules]


async def listed(storage: Storage, *, limit: int = BATCH_LIMIT, **which: Any) -> list[list[str]]:
    """Return the ids of every page of a listing."""
    pages: list[list[str]] = []
    cursor = ""
    while cursor or not pages:
        page = await storage.list_schedules(cursor=cursor, limit=limit, **which)
        pages.append(names(page.schedules))
        cursor = page.cursor
    return pages


def flat(pages: list[list[str]]) -> list[str]:
    """Return the ids of all pages."""
    return [name for page in pages for name in page]


def an_occurrence(instant_ms: int, schedule_id: str = "s", **options: Any) -> Occurrence:
    """Return an occurrence with a job of the test's queue."""
    return Occurrence(schedule_id, instant_ms, a_job(f"{schedule_id}:{instant_ms}", **options))


async def fire(
    storage: Storage, *occurrences: Occurrence, until_ms: int = LATER_MS + DAY_MS
) -> list[EnqueueOutcome] | None:
    """Fire in one call."""
    return await storage.fire(QUEUE, occurrences, until_ms=until_ms)

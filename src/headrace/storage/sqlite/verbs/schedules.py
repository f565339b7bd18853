"""Schedules are read, listed, written and taken: the verbs of `Scheduler` on its own tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any

from headrace.errors import TooManySchedules
from headrace.storage.limits import (
    BATCH_LIMIT_BYTES,
    SCHEDULE_HISTORY,
    SCHEDULES_PAGE_LIMIT,
)
from headrace.storage.schedules import (
    SchedulePage,
    ScheduleRead,
    ScheduleWrite,
    StoredSchedule,
    TakenSchedules,
)
from headrace.storage.sqlite import fired, listeners
from headrace.storage.sqlite.engine.rows import json_list
from headrace.storage.sqlite.engine.step import Step

_FIELDS = "id, app, version, due_ms, body"

_READ = f"""
SELECT {_FIELDS} FROM schedules
WHERE tenant = ? AND id IN (SELECT value FROM json_each(?))
"""  # noqa: S608
_LIST = f"SELECT {_FIELDS} FROM schedules WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?"  # noqa: S608
_LIST_APP = f"""
SELECT {_FIELDS} FROM schedules
WHERE tenant = ? AND app = ? AND app <> '' AND id > ? ORDER BY id LIMIT ?
"""  # noqa: S608
_HISTORY = """
SELECT body FROM schedule_history
WHERE schedule = (SELECT key FROM schedules WHERE tenant = ? AND id = ?)
ORDER BY key DESC LIMIT ?
"""
_STANDING = "SELECT key, version FROM schedules WHERE tenant = ? AND id = ?"
_ADD = """
INSERT INTO schedules (version, app, due_ms, look_ms, body, tenant, id)
VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING key
"""
_CHANGE = """
UPDATE schedules SET version = ?, app = ?, due_ms = ?, look_ms = ?, body = ? WHERE key = ?
"""
_DELETE = (
    "DELETE FROM schedule_history WHERE schedule = ?",
    "DELETE FROM schedules WHERE key = ?",
)
_ADD_ENTRY = "INSERT INTO schedule_history (schedule, body) VALUES (?, ?)"
_TRIM = """
DELETE FROM schedule_history WHERE schedule = ?1 AND key <= (
  SELECT key FROM schedule_history WHERE schedule = ?1 ORDER BY key DESC LIMIT 1 OFFSET ?2
)
"""
_DUE = f"""
SELECT {_FIELDS} FROM schedules WHERE tenant = ? AND look_ms <= ? ORDER BY look_ms LIMIT ?
"""  # noqa: S608
_HOLD = """
UPDATE schedules SET look_ms = ? WHERE tenant = ? AND id IN (SELECT value FROM json_each(?))
"""
_FIRST_LOOK = "SELECT min(look_ms) FROM schedules WHERE tenant = ?"
# Of 100,000 this takes 3 ms: too little to keep a number that could be wrong.
_COUNT = "SELECT count(*) FROM schedules WHERE tenant = ?"


def read_schedules(step: Step, tenant: str, ids: Sequence[str]) -> ScheduleRead:
    """Return those of some schedules that are there."""
    rows = step.db.execute(_READ, (tenant, json_list(ids))).fetchall()
    found = {schedule.id: schedule for schedule in map(_stored, rows)}
    return ScheduleRead(step.now_ms, [found[each] for each in ids if each in found])


def list_schedules(
    step: Step, tenant: str, app: str | None, cursor: str, limit: int
) -> SchedulePage:
    """Return a page of the schedules behind the cursor, which is an id."""
    limit = min(limit, SCHEDULES_PAGE_LIMIT)
    sql, whose = (_LIST, [tenant]) if app is None else (_LIST_APP, [tenant, app])
    # One more than is asked for tells whether there is another page.
    with closing(step.db.execute(sql, (*whose, cursor, limit + 1))) as rows:
        schedules, has_more = _that_fit(rows, limit)
    return SchedulePage(step.now_ms, schedules, schedules[-1].id if has_more else "")


def schedule_history(step: Step, tenant: str, schedule_id: str) -> list[bytes]:
    """Return the newest entries of a schedule's history, newest first."""
    rows = step.db.execute(_HISTORY, (tenant, schedule_id, SCHEDULE_HISTORY))
    return [body for (body,) in rows.fetchall()]


def write_schedules(
    step: Step, tenant: str, writes: Sequence[ScheduleWrite], *, wakes: bool, limit: int
) -> list[int | None]:
    """Make changes of schedules that are as they were expected.

    Raises:
        TooManySchedules: the tenant would have more than ``limit``.
    """
    before_ms = _first_look_ms(step, tenant)
    answers = [_write(step, tenant, each) for each in writes]
    if any(version and not each.expected for each, version in zip(writes, answers, strict=True)):
        _check_number(step, tenant, limit)
    after_ms = _first_look_ms(step, tenant)
    if wakes and after_ms is not None and (before_ms is None or after_ms < before_ms):
        listeners.notify_all(step, tenant)
    return answers


def take_schedules(
    step: Step, tenant: str, *, limit: int, hold_ms: int, channel: str
) -> TakenSchedules:
    """Return what is due and hold it; name a channel that is told of what is due sooner."""
    _clean_up(step)
    if channel:
        listeners.name(step, tenant, channel)
    with closing(step.db.execute(_DUE, (tenant, step.now_ms, limit))) as rows:
        schedules, _ = _that_fit(rows, limit)
    if schedules:
        held = json_list(schedule.id for schedule in schedules)
        step.db.execute(_HOLD, (step.now_ms + hold_ms, tenant, held))
    first_ms = _first_look_ms(step, tenant)
    next_ms = None if first_ms is None else max(0, first_ms - step.now_ms)
    return TakenSchedules(step.now_ms, schedules, next_ms)


def _that_fit(rows: Iterable[tuple[Any, ...]], limit: int) -> tuple[list[StoredSchedule], bool]:
    """Return the first schedules that fit into one answer, and whether there were more."""
    found: list[StoredSchedule] = []
    size = 0
    for row in rows:
        schedule = _stored(row)
        size += len(schedule.body)
        if len(found) == limit or (found and size > BATCH_LIMIT_BYTES):
            return found, True
        found.append(schedule)
    return found, False


def _stored(row: tuple[Any, ...]) -> StoredSchedule:
    schedule_id, app, version, due_ms, body = row
    return StoredSchedule(id=schedule_id, app=app, version=version, due_ms=due_ms, body=body)


def _write(step: Step, tenant: str, write: ScheduleWrite) -> int | None:
    """Make one change, and return the new version, 0 without one; None if it was not expected."""
    standing = step.db.execute(_STANDING, (tenant, write.id)).fetchone()
    key, version = standing or (None, 0)
    if version != write.expected:
        return None
    if write.body is None:
        for sql in _DELETE:
            step.db.execute(sql, (key,))
        return 0
    version = write.first_version if key is None else version + 1
    values = (version, write.app, write.due_ms, write.due_ms, write.body)
    if key is None:
        [key] = step.db.execute(_ADD, (*values, tenant, write.id)).fetchone()
    else:
        step.db.execute(_CHANGE, (*values, key))
    if write.history:
        _add_history(step, key, write.history)
    return int(version)


def _add_history(step: Step, key: int, entries: Sequence[bytes]) -> None:
    newest = entries[-SCHEDULE_HISTORY:]
    step.db.executemany(_ADD_ENTRY, [(key, entry) for entry in newest])
    step.db.execute(_TRIM, (key, SCHEDULE_HISTORY))


def _check_number(step: Step, tenant: str, limit: int) -> None:
    """See that there are not too many, once some were made."""
    [number] = step.db.execute(_COUNT, (tenant,)).fetchone()
    if number > limit:
        raise TooManySchedules(
            f"tenant {tenant!r} would have {number:,} schedules, and may have {limit:,}: delete "
            "some first"
        )


def _first_look_ms(step: Step, tenant: str) -> int | None:
    first_ms: int | None
    [first_ms] = step.db.execute(_FIRST_LOOK, (tenant,)).fetchone()
    return first_ms


def _clean_up(step: Step) -> None:
    """Delete some of what is over."""
    listeners.forget(step)
    fired.forget(step)

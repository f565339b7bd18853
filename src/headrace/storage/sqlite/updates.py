"""How a request changes the job that has its id."""

from __future__ import annotations

from headrace.request import JobRequest
from headrace.storage.sqlite.intake import INLINE_LIMIT_BYTES, due_ms_of, expires_at_ms_of, lane_of
from headrace.storage.sqlite.moves import Delayed, Ready, move
from headrace.storage.sqlite.record import Record, add_channel
from headrace.storage.sqlite.unit import UnitOfWork
from headrace.update import Update, UpdateRunAt, cut_options, join_options

_DATA = """
UPDATE jobs SET task = ?, payload = ?, tier = ?, lane = ?, keep_ms = ?, on_failed = ?, gates = ?,
  slots = ?
WHERE key = ?
"""
_COUNTS = "UPDATE jobs SET failures = 0, stalls = 0, put_back = NULL WHERE key = ?"
_EXPIRY = "UPDATE jobs SET expires_at_ms = ? WHERE key = ?"


def takes_time(unit: UnitOfWork, update: Update, *, its_ms: int, asked_ms: int) -> bool:
    """Whether an update sets a job's due time to what is asked; none, or a past one, is now."""
    its_ms, asked_ms = max(its_ms, unit.now_ms), max(asked_ms, unit.now_ms)
    match update.run_at:
        case UpdateRunAt.NEVER:
            return False
        case UpdateRunAt.ALWAYS:
            return True
        case UpdateRunAt.IF_LATER:
            return asked_ms > its_ms
        case UpdateRunAt.IF_EARLIER:
            return asked_ms < its_ms


def set_parts(unit: UnitOfWork, record: Record, job: JobRequest, update: Update) -> None:
    """Set data, retries and counts to those of a request, as far as the update names them.

    What was gathered of the job must be written.
    """
    if update.data:
        _set_data(unit, record, job)
    if update.retry:
        record.max_stalls = job.max_stalls
        sql = "UPDATE jobs SET max_stalls = ? WHERE key = ?"
        unit.db.execute(sql, (job.max_stalls, record.key))
    _set_options(unit, record.key, job.options, update)
    if update.reset_counts:
        record.failures = record.stalls = 0
        record.put_back = None
        unit.db.execute(_COUNTS, (record.key,))
        unit.db.execute("DELETE FROM errors WHERE job = ?", (record.key,))


def _set_data(unit: UnitOfWork, record: Record, job: JobRequest) -> None:
    record.task, record.tier, record.keep_ms = job.task, job.priority, job.keep_ms
    record.lane, record.on_failed = lane_of(unit, job), job.on_failed or None
    is_inline = len(job.payload) <= INLINE_LIMIT_BYTES
    payload = job.payload if is_inline else None
    gates = record.gates_asked = (
        unit.gates.named(job.gates, lane=record.lane, tier=record.tier) if job.gates else None
    )
    values = (job.task, payload, job.priority, record.lane, job.keep_ms, record.on_failed, gates)
    unit.db.execute(_DATA, (*values, job.slots, record.key))
    if is_inline:
        unit.db.execute("DELETE FROM payloads WHERE job = ?", (record.key,))
    else:
        sql = "INSERT OR REPLACE INTO payloads (job, body) VALUES (?, ?)"
        unit.db.execute(sql, (record.key, job.payload))


def _set_options(unit: UnitOfWork, key: int, asked: bytes, update: Update) -> None:
    [options] = unit.db.execute("SELECT options FROM jobs WHERE key = ?", (key,)).fetchone()
    (data, retry), (asked_data, asked_retry) = cut_options(options), cut_options(asked)
    merged = join_options(
        asked_data if update.data else data, asked_retry if update.retry else retry
    )
    if merged != options:
        unit.db.execute("UPDATE jobs SET options = ? WHERE key = ?", (merged, key))


def set_expiry(unit: UnitOfWork, record: Record, job: JobRequest) -> None:
    """Set when a job expires to what a request says."""
    record.expires_at_ms = expires_at_ms_of(unit, job)
    unit.db.execute(_EXPIRY, (record.expires_at_ms, record.key))


def add_channels(
    unit: UnitOfWork, record: Record, channels: str, *, is_joined: bool = True
) -> None:
    """Let channels hear of a job's end; it is kept for them where producers have joined it."""
    for channel in channels.split():
        add_channel(unit, record, channel)
    if channels and is_joined:
        record.joined = 1
        unit.db.execute("UPDATE jobs SET joined = 1 WHERE key = ?", (record.key,))


def apply(
    unit: UnitOfWork, record: Record, job: JobRequest, update: Update, *, is_joined: bool = True
) -> None:
    """Change a job that waits: its parts, whom it tells, and its place if that is another now.

    The channels of the request are those of producers, unless it is said that none ``is_joined``.
    """
    unit.flush()
    line = (record.lane, record.tier, record.gates)
    (its_ms, run_ms), asked_ms = _times(unit, record), due_ms_of(unit, job)
    has_time = takes_time(unit, update, its_ms=its_ms, asked_ms=asked_ms)
    set_parts(unit, record, job, update)
    if has_time:
        set_expiry(unit, record, job)
    add_channels(unit, record, job.channel, is_joined=is_joined)
    is_other_line = line != (record.lane, record.tier, record.gates_asked) or (
        update.data and _is_laid_aside(unit, record)
    )
    if has_time and asked_ms > unit.now_ms:
        place = Delayed("scheduled", asked_ms, run_ms)
        move(unit, record, place, "updated", detail=str(asked_ms))
    elif is_other_line if record.state in ("queued", "blocked") else has_time:
        move(unit, record, Ready(unit.next_tail()), "updated")
    else:
        if its_ms and is_other_line:
            unit.wakes.lane(record.lane)  # its consumers may have no timer for this one
        detail = str(its_ms) if its_ms else ""
        unit.events.add("updated", record.id, record.task, start=record.epoch, detail=detail)
    unit.flush()


def _is_laid_aside(unit: UnitOfWork, record: Record) -> bool:
    """Whether a strike holds it up: that may not meet it with other data."""
    if record.state != "blocked":
        return False
    [line] = unit.db.execute("SELECT parked FROM jobs WHERE key = ?", (record.key,)).fetchone()
    return line is not None and "\t" not in line


def _times(unit: UnitOfWork, record: Record) -> tuple[int, int]:
    """Return when a job is due, 0 where it waits for no time, and how long it last ran."""
    sql = "SELECT coalesce(due_ms, 0), run_ms FROM jobs WHERE key = ?"
    due_ms, run_ms = unit.db.execute(sql, (record.key,)).fetchone()
    return due_ms, run_ms

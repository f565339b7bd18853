"""The readers of a queue's events: how far each has come, and what all have seen."""

from __future__ import annotations

import sqlite3

from headrace.errors import TooManyReaders
from headrace.storage.limits import EVENTS_TRIMMED_A_CALL, READER_TTL_MS, READERS_LIMIT
from headrace.storage.sqlite.events import QUEUE_SHIFT
from headrace.storage.sqlite.unit import UnitOfWork

_LAST = """
SELECT key, at_ms, n FROM events WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT 1
"""
_FIRST = "SELECT n, lines FROM events WHERE key BETWEEN ? AND ? ORDER BY key LIMIT 1"
_KNOWN = "SELECT entry, number FROM readers WHERE queue = ? AND name = ?"
_PUT = """
INSERT INTO readers (queue, name, entry, entry_ms, number, at_ms) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (queue, name) DO UPDATE SET
  entry = excluded.entry, entry_ms = excluded.entry_ms, number = excluded.number,
  at_ms = excluded.at_ms
"""
_HEARD = "UPDATE readers SET at_ms = ? WHERE queue = ? AND name = ?"
_COUNT = "SELECT count(*) FROM readers WHERE queue = ?"
_SEEN = "SELECT min(entry) FROM readers WHERE queue = ?"
_OLDEST = "SELECT min(key) FROM events WHERE key BETWEEN ? AND ?"
_TRIM = "DELETE FROM events WHERE key BETWEEN ? AND ?"
_PRUNE = "DELETE FROM readers WHERE queue = ? AND at_ms <= ?"
_FORGET = "DELETE FROM readers WHERE queue = ? AND name = ?"


def acknowledge(unit: UnitOfWork, name: str, entry: int, number: int) -> None:
    """Note how far a reader has come, and trim what all have seen.

    Args:
        unit: the call.
        name: the reader's.
        entry: the entry that it has seen.
        number: up to which event, 0 for all of it.

    Raises:
        TooManyReaders: there are as many as there may be.
    """
    db = unit.db
    known = db.execute(_KNOWN, (unit.key, name)).fetchone()
    if known is None:
        _check_number(db, unit)
    entry, entry_ms, number = _place(db, unit, entry, number)
    if known is None or (entry, number) > tuple(known):
        db.execute(_PUT, (unit.key, name, entry, entry_ms, number, unit.now_ms))
    else:
        db.execute(_HEARD, (unit.now_ms, unit.key, name))
    trim(unit)


def _check_number(db: sqlite3.Connection, unit: UnitOfWork) -> None:
    [count] = db.execute(_COUNT, (unit.key,)).fetchone()
    if count >= READERS_LIMIT:
        raise TooManyReaders(
            f"queue {unit.queue!r} has {count} readers of its events: forget those that are not "
            "used"
        )


def _place(
    db: sqlite3.Connection, unit: UnitOfWork, entry: int, number: int
) -> tuple[int, int, int]:
    """Return behind which entry a reader goes on, when that came, and its last event's number.

    One that names what is not there yet has seen all there is.
    """
    base = unit.key << QUEUE_SHIFT
    last = db.execute(_LAST, (base, base + min(entry, unit.last_entry))).fetchone()
    if last is None:
        return 0, 0, _before_all(db, unit)
    key, at_ms, n = last
    if key - base == entry and 0 < number < n:
        return entry - 1, at_ms, number
    return key - base, at_ms, n


def _before_all(db: sqlite3.Connection, unit: UnitOfWork) -> int:
    """Return the number of the last event before all that are kept."""
    base = unit.key << QUEUE_SHIFT
    first = db.execute(_FIRST, (base, base + unit.last_entry)).fetchone()
    return unit.told if first is None else max(0, first[0] - first[1].count("\n") - 1)


def trim(unit: UnitOfWork) -> None:
    """Trim a bounded piece of what all have acknowledged, or of what is over without readers."""
    base = unit.key << QUEUE_SHIFT
    [seen] = unit.db.execute(_SEEN, (unit.key,)).fetchone()
    over = unit.last_entry - unit.settings.events
    until = over if seen is None else min(over, seen)
    [oldest] = unit.db.execute(_OLDEST, (base, base + unit.last_entry)).fetchone()
    if oldest is not None and oldest <= base + until:
        unit.db.execute(_TRIM, (oldest, min(base + until, oldest + EVENTS_TRIMMED_A_CALL - 1)))


def forget(unit: UnitOfWork, name: str) -> bool:
    """Drop a reader; return whether there was one."""
    was_there = unit.db.execute(_FORGET, (unit.key, name)).rowcount == 1
    if was_there:
        trim(unit)
    return was_there


def prune(unit: UnitOfWork) -> None:
    """Drop those that have been silent for long, and go on trimming."""
    unit.db.execute(_PRUNE, (unit.key, unit.now_ms - READER_TTL_MS))
    trim(unit)

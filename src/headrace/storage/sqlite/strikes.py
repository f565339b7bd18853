"""Strikes: which jobs of a queue are not to be run until one is lifted.

What is struck by its task alone is met by claims. What arguments are to be is read by workers, to
which claims tell the version.
"""

from __future__ import annotations

import sqlite3

from headrace.errors import TooManyStrikes
from headrace.storage.limits import STRIKES_LIMIT
from headrace.storage.sqlite.unit import UnitOfWork
from headrace.strike import Strike, StrikeAction

_ALL = """
SELECT id, task, conditions, action, since_ms FROM strikes WHERE queue = ? ORDER BY since_ms, id
"""
_PUT = """
INSERT INTO strikes (queue, id, task, conditions, action, since_ms) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET task = excluded.task, conditions = excluded.conditions,
  action = excluded.action, since_ms = excluded.since_ms
"""
_LIFT = "DELETE FROM strikes WHERE queue = ? AND id = ?"
_FRONT = "UPDATE queues SET front = front + 1 WHERE key = ? RETURNING front"
_FLAGS = "SELECT is_struck, has_conditions FROM queues WHERE key = ?"
_NOTE = """
UPDATE queues SET is_struck = ?, has_conditions = ?, strikes_version = strikes_version + ?
WHERE key = ?
"""

FRONT = 2**48
"""There are fewer heads."""


def read_all(db: sqlite3.Connection, queue: int) -> list[Strike]:
    """Return all strikes of a queue, those that were set first before the others."""
    return [
        Strike(
            id=strike_id,
            task=task,
            where=conditions,
            action=StrikeAction(action),
            since_ms=since_ms,
        )
        for strike_id, task, conditions, action, since_ms in db.execute(_ALL, (queue,)).fetchall()
    ]


def put(unit: UnitOfWork, strike: Strike) -> None:
    """Set a strike.

    Raises:
        TooManyStrikes: there are as many as there may be.
    """
    known = {one.id: one for one in read_all(unit.db, unit.key)}
    if strike.id not in known and len(known) >= STRIKES_LIMIT:
        raise TooManyStrikes(f"queue {unit.queue!r} has {STRIKES_LIMIT} strikes: lift some")
    values = (strike.id, strike.task, strike.where, strike.action.value, unit.now_ms)
    unit.db.execute(_PUT, (unit.key, *values))
    before = known.get(strike.id)
    _note(unit, changes_conditions=bool(strike.where or (before and before.where)))


def lift(unit: UnitOfWork, strike_id: str) -> bool:
    """Lift a strike; return whether it was there."""
    found = [one for one in read_all(unit.db, unit.key) if one.id == strike_id]
    if not found:
        return False
    unit.db.execute(_LIFT, (unit.key, strike_id))
    _note(unit, changes_conditions=bool(found[0].where))
    return True


def by_task(unit: UnitOfWork) -> dict[str, Strike]:
    """Return the strikes by which jobs of a task are not to be taken."""
    if not unit.is_struck:
        return {}
    strikes = reversed(read_all(unit.db, unit.key))
    return {strike.task: strike for strike in strikes if not strike.where}


def next_front(unit: UnitOfWork) -> int:
    """Return a place before all heads; these rise, as the jobs do that were taken from there."""
    [front] = unit.db.execute(_FRONT, (unit.key,)).fetchone()
    return int(front) - FRONT


def mend(unit: UnitOfWork) -> bool:
    """Bring what claims look at back to the strikes that there are; return whether it was wrong."""
    said: tuple[int, int] = unit.db.execute(_FLAGS, (unit.key,)).fetchone()
    is_wrong = said != _flags(unit)
    if is_wrong:
        _note(unit, changes_conditions=True)
    return is_wrong


def _flags(unit: UnitOfWork) -> tuple[bool, bool]:
    """Return whether any strike says no more than a task, and whether any says more."""
    strikes = read_all(unit.db, unit.key)
    return any(not strike.where for strike in strikes), any(strike.where for strike in strikes)


def _note(unit: UnitOfWork, *, changes_conditions: bool) -> None:
    """Have the queue's row say what claims look at."""
    unit.db.execute(_NOTE, (*_flags(unit), changes_conditions, unit.key))

"""What keeps a queue in order when others died or rows were lost: the verbs of `Maintenance`."""

from __future__ import annotations

from headrace.job import ErrorInfo
from headrace.storage.incarnations import Beat
from headrace.storage.limits import MOVED_A_CALL, PRUNED_A_CALL
from headrace.storage.sqlite import (
    attempts,
    calls,
    history,
    idempotency,
    incarnations,
    lines,
    readers,
    stages,
    walk,
    writes,
)
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.incarnations import count_owned, owned
from headrace.storage.sqlite.unit import find_unit
from headrace.storage.values import Repaired

MESSAGE_TTL_MS = 60_000

_BEATS = "SELECT name, beat, lease_ms, is_condemned FROM incarnations WHERE queue = ?"


def beats(step: Step, name: QueueName) -> dict[str, Beat]:
    """Return every listed incarnation."""
    unit = find_unit(step, name)
    rows = step.db.execute(_BEATS, (unit.key,)).fetchall() if unit else []
    return {
        incarnation: Beat(
            count=-1 if is_condemned else beat,
            lease_ms=lease_ms,
            is_condemned=bool(is_condemned),
        )
        for incarnation, beat, lease_ms, is_condemned in rows
    }


def reap(step: Step, name: QueueName, incarnation: str, seen: int, error: ErrorInfo) -> int | None:
    """Condemn an incarnation whose beat has not moved, and take its jobs back."""
    unit = find_unit(step, name)
    if unit is None:
        return None
    sql = "SELECT key, beat, is_condemned FROM incarnations WHERE queue = ? AND name = ?"
    row = step.db.execute(sql, (unit.key, incarnation)).fetchone()
    if row is None or (not row[2] and row[1] != seen):
        return None
    owner = row[0]
    incarnations.note_left(unit, incarnation, "reaped")
    incarnations.condemn(unit, owner)
    for record in owned(unit, owner, MOVED_A_CALL):
        attempts.stall(unit, record, incarnation, error)
    unit.wakes.all()
    lines.close(unit)
    return count_owned(unit, owner)


def forget(step: Step, name: QueueName, incarnation: str) -> bool:
    """Take a condemned incarnation off the list, unless something of it is left."""
    unit = find_unit(step, name)
    if unit is None:
        return True
    sql = "SELECT key, is_condemned FROM incarnations WHERE queue = ? AND name = ?"
    row = step.db.execute(sql, (unit.key, incarnation)).fetchone()
    if row is None:
        return True
    if not row[1] or count_owned(unit, row[0]):
        return False
    incarnations.forget(unit, row[0])
    return True


def prune(step: Step, name: QueueName) -> str:
    """Delete a bounded piece of what has ended; return a cursor while there may be more."""
    sql = "DELETE FROM messages WHERE at_ms <= ?"
    step.db.execute(sql, (step.now_ms - MESSAGE_TTL_MS,))
    unit = find_unit(step, name)
    if unit is None:
        return ""
    calls.forget(unit)
    readers.prune(unit)
    over = history.over(
        unit.db,
        unit.key,
        now_ms=unit.now_ms,
        dead_letter_ttl_ms=unit.settings.dead_letter_ttl_ms,
        limit=PRUNED_A_CALL,
    )
    for key, state in over:
        unit.erase_ended(key, state)
    unit.close()
    left = stages.erase_over(unit)
    forgotten = max(writes.forget_over(unit), idempotency.forget(unit))
    full = lines.forget_full(unit, PRUNED_A_CALL)
    has_more = left or max(len(over), forgotten, full) >= PRUNED_A_CALL
    return "more" if has_more else ""


def open_lines(step: Step, name: QueueName, cursor: str) -> str:
    """Open a bounded piece of the lines that have room and that nobody comes for."""
    unit = find_unit(step, name)
    if unit is None:
        return ""
    cursor = lines.open_forgotten(unit, cursor)
    lines.close(unit)
    return cursor


def recount(step: Step, name: QueueName, cursor: str) -> Repaired:
    """Bring a bounded piece of what is derived from rows back to those that are there."""
    unit = find_unit(step, name)
    return walk.go_on(unit, cursor) if unit else Repaired("", 0)

"""Delayed jobs whose time has come."""

from __future__ import annotations

from headrace.storage.limits import BATCH_LIMIT
from headrace.storage.sqlite import finish, lines
from headrace.storage.sqlite.moves import Ready, move
from headrace.storage.sqlite.record import load
from headrace.storage.sqlite.unit import UnitOfWork

_DUE = "SELECT id FROM jobs WHERE queue = ? AND due_ms <= ? ORDER BY due_ms, key LIMIT ?"


def next_ms(unit: UnitOfWork) -> int | None:
    """Return how long until the next job or gate is due, None without one."""
    due_ms = unit.wakes.first_due_ms()
    if unit.gate_due_ms is not None:
        due_ms = unit.gate_due_ms if due_ms is None else min(due_ms, unit.gate_due_ms)
    return None if due_ms is None else max(0, due_ms - unit.now_ms)


def promote(unit: UnitOfWork) -> None:
    """Make ready what fell due, and open the gates that did."""
    if next_ms(unit) != 0:
        return
    rows = unit.db.execute(_DUE, (unit.key, unit.now_ms, BATCH_LIMIT)).fetchall()
    known = load(unit, [row[0] for row in rows])
    for (job_id,) in rows:
        record = known[job_id]
        if record.is_overdue(unit.now_ms):
            finish.fail(unit, record, "expired")
        else:
            move(unit, record, Ready(unit.next_tail()), "queued", detail="due")
    unit.flush()
    lines.open_due(unit)

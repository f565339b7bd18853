"""The lines of gates: who gets the places that came free, and what follows from new terms.

Gates that got room in a call are opened before it closes. What its bounds cut off is due at once,
and opened by the next claim.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.storage.limits import GATE_LOOKS, GATES_LOOKS
from headrace.storage.sqlite import finish
from headrace.storage.sqlite.moves import ADMITTED, Ready, move
from headrace.storage.sqlite.record import FIELDS, Record, Span, load_one
from headrace.storage.sqlite.unit import UnitOfWork

_LAST = "\U0010ffff"
"""Behind the names of all gates."""

_FIRST = f"""
SELECT {FIELDS}, number FROM jobs
WHERE queue = ? AND parked = ? ORDER BY tier DESC, number LIMIT 1
"""  # noqa: S608
_DUE = "SELECT name FROM gates WHERE queue = ? AND due_ms <= ? ORDER BY due_ms, name LIMIT ?"
_NEXT = "SELECT min(parked) FROM jobs WHERE queue = ? AND parked > ? AND parked < ?"
_LOST = """
SELECT key FROM jobs INDEXED BY jobs_id
WHERE queue = ? AND id > ? AND id <= ? AND state = 'blocked' AND is_next = 0
  AND (parked IS NULL OR (gates IS NULL AND instr(parked, char(9))))
"""
_FORGET_FULL = """
DELETE FROM gates WHERE queue = ?1 AND name IN (
  SELECT name FROM gates WHERE queue = ?1 AND full_ms <= ?2 AND due_ms IS NULL LIMIT ?3
)
"""
_IS_DUE = "SELECT due_ms IS NOT NULL FROM gates WHERE queue = ? AND name = ?"
_LIMITS = "SELECT name, opened FROM limits WHERE queue = ? AND opened IS NOT NULL ORDER BY name"
_OPENED = "UPDATE limits SET opened = ? WHERE queue = ? AND name = ?"


def close(unit: UnitOfWork) -> None:
    """Open the gates that got room in a call, and end it."""
    open_freed(unit)
    unit.close()


def let_go(unit: UnitOfWork, line: str) -> None:
    """Note that a strike's line may be opened."""
    unit.gates.gate(line).looks = GATES_LOOKS


def open_freed(unit: UnitOfWork) -> None:
    """Open the gates in which places came free in this call, as far as the bound goes.

    That is in the order in which the call met them.
    """
    left = GATES_LOOKS
    while left > 0 and (freed := unit.gates.freed()):
        for gate in freed:
            looks, gate.looks = min(gate.looks, left), 0
            left -= _open(unit, gate.name, looks)
    unit.flush()


def let_next_in(unit: UnitOfWork) -> None:
    """Let the next of those keys in whose turn is over, for a claim that goes on with them."""
    names, unit.gates.turns_over = unit.gates.turns_over, []
    for name in names:
        gate = unit.gates.gate(name)
        looks, gate.looks = gate.looks, 0
        _open(unit, name, looks)
    unit.flush()


def open_due(unit: UnitOfWork) -> None:
    """Open the gates that are due, and go on with limits that have new terms."""
    if unit.gate_due_ms is None or unit.gate_due_ms > unit.now_ms:
        return
    looks = GATES_LOOKS
    rows = unit.db.execute(_DUE, (unit.key, unit.now_ms, looks)).fetchall()
    for (name,) in rows:
        if looks > 0:
            looks -= max(1, _open(unit, name, looks))
    for limit, opened in unit.db.execute(_LIMITS, (unit.key,)).fetchall():
        if looks > 0:
            looks -= _open_limit(unit, limit, opened, looks)
    unit.flush()
    unit.write_gates(wakes=False)


def follow(unit: UnitOfWork, limits: Iterable[str]) -> None:
    """Open the gates of limits that have new terms, as far as the bounds go."""
    looks = GATES_LOOKS
    for limit in limits:
        looks -= _open_limit(unit, limit, limit, looks)


def _open_limit(unit: UnitOfWork, limit: str, opened: str, looks: int) -> int:
    """Open the gates of a limit behind one; return how many jobs were looked at."""
    left = looks
    behind: str | None = opened
    while left > 0 and behind is not None:
        # A tab is less than any character of a name.
        [behind] = unit.db.execute(_NEXT, (unit.key, opened, f"{limit}\n")).fetchone()
        if behind is not None:
            opened = behind
            left -= max(1, _open(unit, opened, left))
    unit.db.execute(_OPENED, (None if behind is None else opened, unit.key, limit))
    return looks - left


def _open(unit: UnitOfWork, name: str, looks: int) -> int:
    """Let the first of a line take their places; return how many were looked at.

    Who leaves a line is written at once, so only who joined this one has to be written before.
    """
    gate = unit.gates.gate(name)
    for look in range(looks):
        if not gate.has_room:
            return look
        if gate.came:
            unit.flush()
        row = unit.db.execute(_FIRST, (unit.key, name)).fetchone()
        if row is None:
            return look
        *values, number = row
        record = Record(*values)
        record.standing = (name, number)
        if record.is_overdue(unit.now_ms):
            finish.fail(unit, record, "expired")
        else:
            move(unit, record, Ready(number), "queued", detail=ADMITTED)
    return looks


def mend(unit: UnitOfWork, span: Span) -> int:
    """Admit those of some ids anew that have lost their line; return how many they were."""
    lost = [load_one(unit, key) for (key,) in unit.db.execute(_LOST, (unit.key, *span)).fetchall()]
    for record in lost:
        move(unit, record, Ready(unit.next_tail()), "queued", detail=ADMITTED)
    return len(lost)


def open_forgotten(unit: UnitOfWork, opened: str) -> str:
    """Open some lines behind one that have room, and that nobody else would come for.

    Returns:
        The last that was looked at, "" at the end.
    """
    for _ in range(GATES_LOOKS):
        [name] = unit.db.execute(_NEXT, (unit.key, opened, _LAST)).fetchone()
        if name is None:
            return ""
        opened = name
        row = unit.db.execute(_IS_DUE, (unit.key, name)).fetchone()
        if not (row and row[0]) and unit.gates.look_at(name).has_room:
            unit.gates.gate(name).looks = GATE_LOOKS
    return opened


def forget_full(unit: UnitOfWork, limit: int) -> int:
    """Forget gates without jobs whose tokens are all there; return how many these were."""
    return unit.db.execute(_FORGET_FULL, (unit.key, unit.now_ms, limit)).rowcount

"""What a move of a job means to its gates: the places that it gives back, keeps or takes there."""

from __future__ import annotations

from headrace.storage.sqlite.intake import NewJob
from headrace.storage.sqlite.record import Record
from headrace.storage.sqlite.unit import UnitOfWork

_PARKED = "SELECT parked, number FROM jobs WHERE key = ?"
_PART = "UPDATE jobs SET parked = NULL, number = NULL WHERE key = ?"
_RENEW = """
UPDATE jobs SET expires_at_ms = 0, put_back = NULL, reason = '', error = '', cancel = 0,
  channels = NULL, run_ms = 0, joined = 0
WHERE key = ?
"""


def line_of_new(unit: UnitOfWork, new: NewJob) -> str | None:
    """Return the gate in whose line a new job has to wait; None: it has a place in each of its own.

    Its ``seq`` is its place in the line, as it would be among those that are ready.
    """
    place = (-new.tier, new.seq or 0)
    line = unit.gates.admit(new.gates or "", place)
    if line is not None:
        unit.gates.join(line, place, new.lane)
    return line


def line_of(unit: UnitOfWork, record: Record, number: int | None) -> str | None:
    """Give back what a job that moves holds in its gates, and see where it may go.

    Args:
        unit: the call.
        record: the job, where it was.
        number: its place among those that are ready, if it goes there; None: it goes elsewhere.

    Returns:
        The gate in whose line it has to wait instead; None: it goes where it is to.
    """
    gates = record.gates
    if gates and record.state == "active" and number is not None:
        unit.gates.keep(gates)
        return None
    if gates and record.state in ("queued", "active"):
        unit.gates.give_back(gates, record.state)
    elif record.state == "blocked":
        _part(unit, record)
    gates = record.gates = record.gates_asked
    if number is None or not gates:
        return None
    line = unit.gates.admit(gates, (-record.tier, number))
    if line is not None and record.state == "failed":
        record.failures = record.stalls = 0
        unit.db.execute(_RENEW, (record.key,))
    return line


def shown(line: str) -> str:
    """Return a gate as an event tells of it: its limit and key."""
    return line.replace("\t", " ").rstrip()


def _part(unit: UnitOfWork, record: Record) -> None:
    if record.standing is None:
        unit.flush()
        record.standing = unit.db.execute(_PARKED, (record.key,)).fetchone()
    line, number = record.standing
    record.standing = None
    if line is not None:
        unit.gates.part(line, (-record.tier, number))
    unit.db.execute(_PART, (record.key,))

"""How a job stands, and what may keep it from running: ``why``."""

from __future__ import annotations

from headrace.job import JobRecord, JobState
from headrace.storage.incarnations import IncarnationInfo
from headrace.storage.limits import BEFORE_REACH, WHY_BEATS, WHY_WORKERS
from headrace.storage.situation import Before, GateStanding, NextRun, Situation
from headrace.storage.sqlite import holders, strikes
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.gates import GateState
from headrace.storage.sqlite.record import WAITING
from headrace.storage.sqlite.unit import UnitOfWork, find_unit
from headrace.storage.sqlite.verbs import reading
from headrace.storage.sqlite.verbs.inspector import WORKERS, read_worker
from headrace.strike import Strike

_BEATS = """
SELECT name, NOT is_condemned AND ? - beat_ms <= lease_ms FROM incarnations WHERE queue = ?
ORDER BY name LIMIT ?
"""
_LIVE = f"{WORKERS} AND NOT is_condemned AND ? - beat_ms <= lease_ms AND name <= ? ORDER BY name"
_OWNER = f"{WORKERS} AND name = ?"
_PLACE = "SELECT seq, number FROM jobs WHERE queue = ? AND id = ? AND is_next = 0"
_NEXT = "SELECT created_ms, next_due_ms FROM jobs WHERE queue = ? AND id = ? AND is_next = 1"
_READY_BEFORE = """
SELECT count(*) FROM (
  SELECT 1 FROM jobs WHERE queue = ?1 AND lane = ?2 AND tier > ?3 AND seq IS NOT NULL
  UNION ALL
  SELECT 1 FROM jobs WHERE queue = ?1 AND lane = ?2 AND tier = ?3 AND seq < ?4
  LIMIT ?5
)
"""
_PARKED_BEFORE = """
SELECT count(*) FROM (
  SELECT 1 FROM jobs WHERE queue = ?1 AND parked = ?2 AND tier > ?3
  UNION ALL
  SELECT 1 FROM jobs WHERE queue = ?1 AND parked = ?2 AND tier = ?3 AND number < ?4
  LIMIT ?5
)
"""
_HOLDS = (JobState.QUEUED, JobState.BLOCKED)


def why(step: Step, name: QueueName, job_id: str) -> Situation | None:
    """Return how a job stands, None where there is none."""
    record = reading.get(step, name, job_id)
    unit = find_unit(step, name)
    if record is None or unit is None:
        return None
    [seq, number] = step.db.execute(_PLACE, (unit.key, job_id)).fetchone()
    workers, has_more_workers = _workers(step, unit)
    return Situation(
        record=record,
        now_ms=step.now_ms,
        is_paused=unit.is_paused,
        max_active=unit.settings.max_active,
        active=unit.counts["active"],
        before=None if seq is None else _ready_before(unit, record, seq),
        next=_next(unit, record) if record.has_next else None,
        gates=_gates(unit, record, number) if record.state in _HOLDS else [],
        strikes=_strikes(unit, record) if record.state in WAITING else [],
        struck_before=_struck_before(unit, record, number),
        owner=_owner(step, unit, record) if record.state is JobState.ACTIVE else None,
        workers=workers,
        has_more_workers=has_more_workers,
    )


def _workers(step: Step, unit: UnitOfWork) -> tuple[list[IncarnationInfo], bool]:
    """Return live workers, and whether there may be more."""
    beats = step.db.execute(_BEATS, (step.now_ms, unit.key, WHY_BEATS + 1)).fetchall()
    live = [name for name, is_live in beats[:WHY_BEATS] if is_live]
    told = live[:WHY_WORKERS]
    has_more = len(beats) > WHY_BEATS or len(live) > len(told)
    rows = step.db.execute(_LIVE, (unit.key, step.now_ms, told[-1])).fetchall() if told else []
    return [read_worker(step, row) for row in rows], has_more


def _owner(step: Step, unit: UnitOfWork, record: JobRecord) -> IncarnationInfo | None:
    row = step.db.execute(_OWNER, (unit.key, record.incarnation)).fetchone()
    return None if row is None else read_worker(step, row)


def _next(unit: UnitOfWork, record: JobRecord) -> NextRun | None:
    row = unit.db.execute(_NEXT, (unit.key, record.id)).fetchone()
    return None if row is None else NextRun(*row)


def _ready_before(unit: UnitOfWork, record: JobRecord, seq: int) -> Before:
    values = (unit.key, record.lane, record.priority, seq, BEFORE_REACH + 1)
    [n] = unit.db.execute(_READY_BEFORE, values).fetchone()
    return _before(n)


def _parked_before(unit: UnitOfWork, record: JobRecord, number: int) -> Before:
    values = (unit.key, record.parked, record.priority, number, BEFORE_REACH + 1)
    [n] = unit.db.execute(_PARKED_BEFORE, values).fetchone()
    return _before(n)


def _strikes(unit: UnitOfWork, record: JobRecord) -> list[Strike]:
    return [one for one in strikes.read_all(unit.db, unit.key) if one.task in ("", record.task)]


def _struck_before(unit: UnitOfWork, record: JobRecord, number: int | None) -> Before | None:
    is_in_line = number is not None and record.parked and "\t" not in record.parked
    return _parked_before(unit, record, number or 0) if is_in_line else None


def _before(n: int) -> Before:
    return Before(min(n, BEFORE_REACH), is_least=n > BEFORE_REACH)


def _gates(unit: UnitOfWork, record: JobRecord, number: int | None) -> list[GateStanding]:
    found = [unit.gates.gate(name) for name in record.gates.split("\n") if name]
    ids = holders.find(unit, record, found)
    return [_gate(unit, record, gate, number, ids[gate.name]) for gate in found]


def _gate(
    unit: UnitOfWork, record: JobRecord, gate: GateState, number: int | None, ids: list[str]
) -> GateStanding:
    limit, _, key = gate.name.partition("\t")
    needed = 1 if record.state is JobState.QUEUED else gate.ready + 1
    is_its_line = record.parked == gate.name and number is not None
    return GateStanding(
        name=limit,
        key=key,
        terms=gate.terms,
        ready=gate.ready,
        active=gate.active,
        tokens=gate.bucket.tokens,
        token_in_ms=gate.bucket.ms_until(needed) if gate.bucket.rate else None,
        before=_parked_before(unit, record, number or 0) if is_its_line else None,
        holders=ids,
    )

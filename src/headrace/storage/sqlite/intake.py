"""How a job is born, and what makes room for it. Nothing here gives it a place.

It stands below the moves, so that a move may bring another job into being.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from headrace.job import DEFAULT_LANE
from headrace.request import JobRequest
from headrace.storage.sqlite.engine.rows import json_list
from headrace.storage.sqlite.record import FIELDS, TERMINAL, Record
from headrace.storage.sqlite.unit import UnitOfWork

INLINE_LIMIT_BYTES = 256
"""Longer payloads lie in a table of their own, since every move of a job writes its whole row."""

_ADD_PAYLOAD = """
INSERT INTO payloads (job, body)
VALUES ((SELECT key FROM jobs WHERE queue = ? AND id = ? AND is_next = 0), ?)
"""
_STANDING = f"""
SELECT {FIELDS}, purge_at_ms <= ? FROM jobs
WHERE queue = ? AND id IN (SELECT value FROM json_each(?)) AND is_next = 0
"""  # noqa: S608
_COPY_BLOCKED = """
INSERT INTO jobs (
  queue, id, is_next, state, task, payload, tier, lane, created_ms, changed_ms, max_stalls, keep_ms,
  options, on_failed, gates, slots
)
SELECT queue, id, 1, 'blocked', task, payload, tier, lane, ?1, ?1, max_stalls, keep_ms, options,
  on_failed, gates, slots
FROM jobs WHERE key = ?2
"""
_COPY_PAYLOAD = "INSERT INTO payloads (job, body) SELECT ?1, body FROM payloads WHERE job = ?2"
_LANE = "SELECT lane FROM lanes WHERE queue = ? AND task = ?"


class NewJob(msgspec.Struct):
    """The first row of a job, by columns; a move sets its state and its place."""

    queue: int
    id: str
    task: str
    payload: bytes | None
    tier: int
    lane: str
    created_ms: int
    changed_ms: int
    expires_at_ms: int
    max_stalls: int
    keep_ms: int
    options: bytes
    channels: str | None
    state: str = ""
    seq: int | None = None
    due_ms: int | None = None
    on_failed: str | None = None
    gates: str | None = None
    parked: str | None = None
    number: int | None = None
    slots: int = 1


_COLUMNS = NewJob.__struct_fields__
_INSERT = f"INSERT INTO jobs ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608


def new(unit: UnitOfWork, job: JobRequest) -> NewJob:
    """Return a job's first row, which needs a place before it is written."""
    now_ms = unit.now_ms
    # Without a call for what few jobs ask for: three of them would cost 3 % of an enqueue.
    lane = job.lane or lane_of(unit, job)
    return NewJob(
        unit.key,
        job.id,
        job.task,
        job.payload,
        job.priority,
        lane,
        now_ms,
        now_ms,
        expires_at_ms_of(unit, job) if job.expires_in_ms else job.expires_at_ms,
        job.max_stalls,
        job.keep_ms,
        job.options,
        job.channel or None,
        on_failed=job.on_failed or None,
        gates=unit.gates.named(job.gates, lane=lane, tier=job.priority) if job.gates else None,
        slots=job.slots,
    )


def write(unit: UnitOfWork, jobs: Collection[NewJob]) -> None:
    """Write new jobs, whose ids are free once what was erased is gone."""
    unit.flush()
    payloads = []
    for job in jobs:
        if job.payload is not None and len(job.payload) > INLINE_LIMIT_BYTES:
            payloads.append((job.queue, job.id, job.payload))
            job.payload = None
    if jobs:
        unit.db.executemany(_INSERT, map(msgspec.structs.astuple, jobs))
        unit.stats.tally("enqueued", len(jobs))
    if payloads:
        unit.db.executemany(_ADD_PAYLOAD, payloads)


def copy_blocked(unit: UnitOfWork, active: Record) -> None:
    """Write one that is blocked by an active job, and asks for the same, but for its time."""
    key = unit.db.execute(_COPY_BLOCKED, (unit.now_ms, active.key)).lastrowid
    unit.db.execute(_COPY_PAYLOAD, (key, active.key))


def standing(unit: UnitOfWork, job_ids: Sequence[str]) -> dict[str, Record]:
    """Return what is kept of jobs, by id; erase those whose time is over."""
    known = {}
    for *fields, is_over in unit.db.execute(
        _STANDING, (unit.now_ms, unit.key, json_list(job_ids))
    ).fetchall():
        record = Record(*fields)
        if is_over:
            unit.erase_ended(record.key, record.state)
        else:
            known[record.id] = record
    return known


def makes_room(record: Record, job: JobRequest) -> bool:
    """Whether a record makes room for a new job of its id."""
    if job.update is not None:
        return record.state in TERMINAL
    return job.replaces_ended and record.state in ("failed", "cancelled")


def lane_of(unit: UnitOfWork, job: JobRequest) -> str:
    """Return a job's lane: that which workers have said if its producer doesn't know the task."""
    if job.lane:
        return job.lane
    row = unit.db.execute(_LANE, (unit.key, job.task)).fetchone()
    return row[0] if row else DEFAULT_LANE


def due_ms_of(unit: UnitOfWork, job: JobRequest) -> int:
    """Return when a job is to be due, 0 or an instant that is past: at once."""
    return unit.now_ms + job.delay_ms if job.delay_ms else job.run_at_ms


def expires_at_ms_of(unit: UnitOfWork, job: JobRequest) -> int:
    """Return when a job expires, 0: never."""
    return unit.now_ms + job.expires_in_ms if job.expires_in_ms else job.expires_at_ms

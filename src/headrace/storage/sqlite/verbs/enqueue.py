"""``enqueue``: stores jobs, unless they are there already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.errors import StaleCall
from headrace.job import DEFAULT_LANE, EnqueueOutcome, Job
from headrace.storage.sqlite import moves
from headrace.storage.sqlite.engine.rows import json_list
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.record import (
    INLINE_LIMIT,
    Record,
    add_channel,
    join,
    load,
    pile_of,
    with_channel,
)
from headrace.storage.sqlite.unit import UnitOfWork, list_queue, open_unit
from headrace.storage.values import CallId

CALLS_REMEMBERED = 2
CALLS_TTL_MS = 600_000

_INSERT = """
INSERT INTO jobs (queue, id, state, task, payload, tier, lane, created, at, seq, due, expires,
  max_stalls, keep, options, inbox)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_ADD_PAYLOAD = """
INSERT INTO payloads (job, body) VALUES ((SELECT key FROM jobs WHERE queue = ? AND id = ?), ?)
"""
_REMEMBER = """
INSERT INTO calls (queue, client, slot, number, answer, at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET number = excluded.number, answer = excluded.answer, at = excluded.at
"""
_GONE = """
SELECT key, id, state, inbox FROM jobs
WHERE queue = ? AND id IN (SELECT value FROM json_each(?)) AND dies <= ?
"""

_LETTERS = {outcome: outcome.value[0] for outcome in EnqueueOutcome}
_OUTCOMES = {letter: outcome for outcome, letter in _LETTERS.items()}


def enqueue(step: Step, name: QueueName, jobs: Sequence[Job], call: CallId) -> list[EnqueueOutcome]:
    """Store jobs; a repeated call answers from memory."""
    unit = open_unit(step, name)
    slot = call.number % CALLS_REMEMBERED
    sql = "SELECT number, answer, at FROM calls WHERE queue = ? AND client = ? AND slot = ?"
    known = step.db.execute(sql, (unit.key, call.client, slot)).fetchone()
    if known is not None and known[2] > step.now_ms - CALLS_TTL_MS:
        if known[0] == call.number:
            return [_OUTCOMES[letter] for letter in known[1]]
        if call.number < known[0]:
            raise StaleCall(f"enqueue call {call.number} is older than {known[0]}")
    list_queue(unit)
    outcomes = _store_all(unit, jobs)
    answer = "".join([_LETTERS[outcome] for outcome in outcomes])
    if known is None:
        forget_calls(unit)
    step.db.execute(_REMEMBER, (unit.key, call.client, slot, call.number, answer, step.now_ms))
    unit.close()
    return outcomes


def forget_calls(unit: UnitOfWork) -> None:
    """Forget the calls that will not be repeated any more."""
    sql = "DELETE FROM calls WHERE queue = ? AND at <= ?"
    unit.db.execute(sql, (unit.key, unit.now_ms - CALLS_TTL_MS))


def _store_all(unit: UnitOfWork, jobs: Sequence[Job]) -> list[EnqueueOutcome]:
    # An id that was just drawn at random can't be there.
    asked = [job.id for job in jobs if not job.is_new_id]
    standing = _standing(unit, asked) if asked else {}
    rows: list[tuple[Any, ...]] = []
    payloads: list[tuple[int, str, bytes]] = []
    outcomes = []
    joined: list[str] = []
    new: dict[str, int] = {}
    for job in jobs:
        record = standing.get(job.id)
        if record is not None:
            is_completed = record.state == "completed"
            if not is_completed and job.reply_to:
                add_channel(unit, record, job.reply_to)
                joined.append(job.id)
            outcomes.append(EnqueueOutcome.COMPLETED if is_completed else EnqueueOutcome.DUPLICATE)
        elif job.id in new:
            outcomes.append(EnqueueOutcome.DUPLICATE)
            if job.reply_to:
                _add_to_row(rows, new[job.id], job.reply_to)
                joined.append(job.id)
        else:
            new[job.id] = len(rows)
            outcomes.append(_store(unit, job, rows, payloads))
    unit.db.executemany(_INSERT, rows)
    if payloads:
        unit.db.executemany(_ADD_PAYLOAD, payloads)
    if joined:
        join(unit, joined)
    if rows:
        unit.stats.tally("enqueued", len(rows))
    return outcomes


def _standing(unit: UnitOfWork, job_ids: Sequence[str]) -> dict[str, Record]:
    """Return the records that stay; those that make room for new ones are deleted."""
    standing = load(unit, job_ids)
    for job_id, record in list(standing.items()):
        if record.state in ("failed", "cancelled"):
            moves.delete(unit, record)
            del standing[job_id]
    gone = unit.db.execute(_GONE, (unit.key, json_list(job_ids), unit.now_ms)).fetchall()
    for key, _, state, _ in gone:
        unit.count(pile_of(state), -1)
        unit.erase(key)
    unit.flush()
    return standing


def _add_to_row(rows: list[tuple[Any, ...]], at: int, channel: str) -> None:
    row = rows[at]
    rows[at] = (*row[:-1], with_channel(row[-1], channel))


def _store(
    unit: UnitOfWork, job: Job, rows: list[tuple[Any, ...]], payloads: list[tuple[int, str, bytes]]
) -> EnqueueOutcome:
    now = unit.now_ms
    payload: bytes | None = job.payload
    if len(job.payload) > INLINE_LIMIT:
        payloads.append((unit.key, job.id, job.payload))
        payload = None
    due = now + job.delay_ms if job.delay_ms else job.run_at_ms
    expires = now + job.expires_in_ms if job.expires_in_ms else job.expires_at_ms
    is_later = due > now
    state = "scheduled" if is_later else "queued"
    unit.count(state, 1)
    unit.events.add(state, job.id, job.task)
    lane = job.lane or _lane_of(unit, job.task)
    if is_later:
        unit.wakes.delayed(due, lane)
    else:
        unit.wakes.lane(lane)
    rows.append(
        (
            *(unit.key, job.id, state, job.task, payload, job.priority, lane, now, now),
            *((None, due) if is_later else (unit.next_tail(), None)),
            *(expires, job.max_stalls, job.keep_ms, job.options, job.reply_to or None),
        )
    )
    return EnqueueOutcome.SCHEDULED if is_later else EnqueueOutcome.QUEUED


def _lane_of(unit: UnitOfWork, task: str) -> str:
    """Return what workers have said of a task that its producer doesn't know."""
    sql = "SELECT lane FROM lanes WHERE queue = ? AND task = ?"
    row = unit.db.execute(sql, (unit.key, task)).fetchone()
    return row[0] if row else DEFAULT_LANE

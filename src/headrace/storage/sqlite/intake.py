"""How a job comes into being: its first record, and what makes room for it.

It stands below the moves, so that a move may bring another job into being.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.job import DEFAULT_LANE, EnqueueOutcome, Job
from headrace.storage.sqlite.engine.rows import json_list
from headrace.storage.sqlite.record import Record, load, with_channel
from headrace.storage.sqlite.unit import UnitOfWork

INLINE_LIMIT_BYTES = 256
"""Longer payloads lie in a table of their own, since every move of a job writes its whole row."""

_INSERT = """
INSERT INTO jobs (queue, id, state, task, payload, tier, lane, created, at, seq, due, expires,
  max_stalls, keep, options, inbox)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_ADD_PAYLOAD = """
INSERT INTO payloads (job, body) VALUES ((SELECT key FROM jobs WHERE queue = ? AND id = ?), ?)
"""
_OVER = """
SELECT key, state FROM jobs
WHERE queue = ? AND id IN (SELECT value FROM json_each(?)) AND dies <= ?
"""
_LANE = "SELECT lane FROM lanes WHERE queue = ? AND task = ?"


class Births:
    """New jobs of one call, whose ids are free; they are written together.

    Args:
        unit: the call.
    """

    def __init__(self, unit: UnitOfWork) -> None:
        self._unit = unit
        self._rows: list[tuple[Any, ...]] = []
        self._payloads: list[tuple[int, str, bytes]] = []
        self._numbers: dict[str, int] = {}

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._numbers

    def add(self, job: Job) -> EnqueueOutcome:
        """Let a job wait for a worker or for its time; return which."""
        unit = self._unit
        now_ms = unit.now_ms
        payload: bytes | None = job.payload
        if len(job.payload) > INLINE_LIMIT_BYTES:
            self._payloads.append((unit.key, job.id, job.payload))
            payload = None
        due_ms = now_ms + job.delay_ms if job.delay_ms else job.run_at_ms
        expires_ms = now_ms + job.expires_in_ms if job.expires_in_ms else job.expires_at_ms
        lane = job.lane or _lane_of(unit, job.task)
        is_later = due_ms > now_ms
        state = "scheduled" if is_later else "queued"
        unit.enter(state)
        unit.events.add(state, job.id, job.task)
        if is_later:
            unit.wakes.delayed(due_ms, lane)
        else:
            unit.wakes.lane(lane)
        self._numbers[job.id] = len(self._rows)
        self._rows.append(
            (
                *(unit.key, job.id, state, job.task, payload, job.priority, lane, now_ms, now_ms),
                *((None, due_ms) if is_later else (unit.next_tail(), None)),
                *(expires_ms, job.max_stalls, job.keep_ms, job.options, job.reply_to or None),
            )
        )
        return EnqueueOutcome.SCHEDULED if is_later else EnqueueOutcome.QUEUED

    def add_channel(self, job_id: str, channel: str) -> None:
        """Note one more channel of a new job."""
        number = self._numbers[job_id]
        row = self._rows[number]
        self._rows[number] = (*row[:-1], with_channel(row[-1], channel))

    def write(self) -> None:
        """Write the records."""
        if self._rows:
            self._unit.db.executemany(_INSERT, self._rows)
            self._unit.stats.tally("enqueued", len(self._rows))
        if self._payloads:
            self._unit.db.executemany(_ADD_PAYLOAD, self._payloads)


def make_room(unit: UnitOfWork, job_ids: Sequence[str]) -> dict[str, Record]:
    """Erase the records that new ones replace, and return those that stay: their ids are taken."""
    standing = load(unit, job_ids)
    over = unit.db.execute(_OVER, (unit.key, json_list(job_ids), unit.now_ms)).fetchall()
    for job_id, record in list(standing.items()):
        if record.state in ("failed", "cancelled"):
            over.append((record.key, record.state))
            del standing[job_id]
    for key, state in over:
        unit.leave(state)
        unit.erase(key)
    unit.flush()
    return standing


def _lane_of(unit: UnitOfWork, task: str) -> str:
    """Return what workers have said of a task that its producer doesn't know."""
    row = unit.db.execute(_LANE, (unit.key, task)).fetchone()
    return row[0] if row else DEFAULT_LANE

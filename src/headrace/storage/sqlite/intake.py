"""How a job is born, and what makes room for it. Nothing here gives it a place.

It stands below the moves, so that a move may bring another job into being.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headrace.job import DEFAULT_LANE, Job
from headrace.storage.sqlite.engine.rows import json_list
from headrace.storage.sqlite.record import Record, load, with_channel
from headrace.storage.sqlite.unit import UnitOfWork

INLINE_LIMIT_BYTES = 256
"""Longer payloads lie in a table of their own, since every move of a job writes its whole row."""

_ADD_PAYLOAD = """
INSERT INTO payloads (job, body) VALUES ((SELECT key FROM jobs WHERE queue = ? AND id = ?), ?)
"""
_OVER = """
SELECT key, state FROM jobs
WHERE queue = ? AND id IN (SELECT value FROM json_each(?)) AND dies <= ?
"""
_LANE = "SELECT lane FROM lanes WHERE queue = ? AND task = ?"


class NewJob(msgspec.Struct):
    """The first row of a job, by columns; a move sets its state and its place."""

    queue: int
    id: str
    task: str
    payload: bytes | None
    tier: int
    lane: str
    created: int
    at: int
    expires: int
    max_stalls: int
    keep: int
    options: bytes
    inbox: str | None
    state: str = ""
    seq: int | None = None
    due: int | None = None


_COLUMNS = NewJob.__struct_fields__
_INSERT = f"INSERT INTO jobs ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608


class Births:
    """New jobs of one call, whose ids are free; they are written together.

    Args:
        unit: the call.
    """

    def __init__(self, unit: UnitOfWork) -> None:
        self._unit = unit
        self._jobs: dict[str, NewJob] = {}
        self._payloads: list[tuple[int, str, bytes]] = []

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._jobs

    def add(self, job: Job) -> NewJob:
        """Return a new job, which needs a place before it is written."""
        unit = self._unit
        now_ms = unit.now_ms
        payload: bytes | None = job.payload
        if len(job.payload) > INLINE_LIMIT_BYTES:
            self._payloads.append((unit.key, job.id, job.payload))
            payload = None
        new = self._jobs[job.id] = NewJob(
            unit.key,
            job.id,
            job.task,
            payload,
            job.priority,
            job.lane or _lane_of(unit, job.task),
            now_ms,
            now_ms,
            now_ms + job.expires_in_ms if job.expires_in_ms else job.expires_at_ms,
            job.max_stalls,
            job.keep_ms,
            job.options,
            job.reply_to or None,
        )
        return new

    def add_channel(self, job_id: str, channel: str) -> None:
        """Note one more channel of a new job."""
        new = self._jobs[job_id]
        new.inbox = with_channel(new.inbox, channel)

    def write(self) -> None:
        """Write the records."""
        if self._jobs:
            rows = [msgspec.structs.astuple(new) for new in self._jobs.values()]
            self._unit.db.executemany(_INSERT, rows)
            self._unit.stats.tally("enqueued", len(rows))
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
        unit.erase_ended(key, state)
    unit.flush()
    return standing


def _lane_of(unit: UnitOfWork, task: str) -> str:
    """Return what workers have said of a task that its producer doesn't know."""
    row = unit.db.execute(_LANE, (unit.key, task)).fetchone()
    return row[0] if row else DEFAULT_LANE

"""A job's record as the verbs and moves see it, and what lies beside it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from headrace.job import ErrorInfo
from headrace.storage.limits import CHANNELS_LIMIT, ERRORS_KEPT
from headrace.storage.sqlite.engine.rows import json_list
from headrace.storage.sqlite.unit import UnitOfWork
from headrace.storage.values import DAMAGED_ERROR

FIELDS = """
jobs.key, jobs.id, state, task, nonce, epoch, failures, stalls, cancel, channels, lane, tier,
expires_at_ms, max_stalls, keep_ms, put_back, joined,
created_ms, next_update, on_failed, gates
"""
"""The columns of a `Record`, in its order."""

PAYLOAD = "coalesce(payload, (SELECT body FROM payloads WHERE job = jobs.key))"
"""The payload of a row of jobs, wherever it lies."""

_LOAD = f"""
SELECT {FIELDS} FROM jobs
WHERE queue = ? AND id IN (SELECT value FROM json_each(?)) AND is_next = 0
  AND (purge_at_ms IS NULL OR purge_at_ms > ?)
"""  # noqa: S608
_LOAD_ONE = f"SELECT {FIELDS} FROM jobs WHERE key = ?"  # noqa: S608
_LOAD_NEXT = f"SELECT {FIELDS} FROM jobs WHERE queue = ? AND id = ? AND is_next = 1"  # noqa: S608
_JOIN = """
UPDATE jobs SET joined = 1
WHERE queue = ? AND id IN (SELECT value FROM json_each(?)) AND is_next = 0
"""
_ADD_ERROR = "INSERT INTO errors (job, at_ms, start, body) VALUES (?, ?, ?, ?)"
_TRIM_ERRORS = f"""
DELETE FROM errors WHERE job = ?1 AND key <=
  (SELECT key FROM errors WHERE job = ?1 ORDER BY key DESC LIMIT 1 OFFSET {ERRORS_KEPT})
"""  # noqa: S608

Span = tuple[str, str]
"""Ids behind one, up to another: a piece of all the rows of a queue."""

TERMINAL = frozenset({"completed", "failed", "cancelled"})
DELAYED = frozenset({"scheduled", "retrying"})
WAITING = DELAYED | {"queued", "blocked"}

_encode_error = msgspec.json.Encoder().encode
_decode_error = msgspec.json.Decoder(ErrorInfo).decode


class Record(msgspec.Struct):
    """What the transitions need to know of a job; changed as they go.

    ``gates`` are those in which it may have places. ``gates_asked`` are those that it meets from
    its next move on, where an update has changed them. ``standing`` is the line in which it waits,
    and its number there, if that is known.
    """

    key: int
    id: str
    state: str
    task: str
    nonce: str
    epoch: int
    failures: int
    stalls: int
    cancel: int
    channels: str | None
    lane: str
    tier: int
    expires_at_ms: int
    max_stalls: int
    keep_ms: int
    put_back: str | None
    joined: int
    created_ms: int
    next_update: str
    on_failed: str | None
    gates: str | None
    is_erased: bool = False
    gates_asked: str | None = None
    standing: tuple[str, int] | None = None

    def __post_init__(self) -> None:
        self.gates_asked = self.gates

    @property
    def owner(self) -> str:
        """The incarnation that claimed the job last: the first part of the claim's nonce."""
        return self.nonce.partition("/")[0]

    def is_overdue(self, now_ms: int) -> bool:
        """Whether it is too late to start; what a worker has ever taken does not expire."""
        return self.epoch == 0 and 0 < self.expires_at_ms <= now_ms


class PutBackNote(msgspec.Struct, frozen=True, array_like=True):
    """Why workers put a job back.

    Attributes:
        since_ms: when the first of a row did.
        charged: how many errors of its handler and stalls it had then. With more of them the note
            is void, for some worker has run it.
        error: what the last one said.
    """

    since_ms: int
    charged: int
    error: ErrorInfo


_decode_note = msgspec.json.Decoder(PutBackNote).decode


def note_put_back(record: Record, since_ms: int, error: ErrorInfo) -> None:
    """Have the record say why it is put back; the move that follows writes it."""
    note = PutBackNote(since_ms, record.failures + record.stalls, error)
    record.put_back = _encode_error(note).decode()


def read_put_back(stored: str | None, charged: int) -> ErrorInfo | None:
    """Return why a job is put back, since ``at_ms``; None if it is not, or a worker has run it."""
    if stored is None:
        return None
    try:
        note = _decode_note(stored)
    except (msgspec.MsgspecError, UnicodeError):
        return None
    is_void = note.charged != charged
    return None if is_void else msgspec.structs.replace(note.error, at_ms=note.since_ms)


def load(unit: UnitOfWork, job_ids: Iterable[str]) -> dict[str, Record]:
    """Return the records of some ids, those that are there."""
    rows = unit.db.execute(_LOAD, (unit.key, json_list(job_ids), unit.now_ms))
    return {row[1]: Record(*row) for row in rows.fetchall()}


def load_next(unit: UnitOfWork, job_id: str) -> Record:
    """Return the one that is blocked by the active job of its id, which must be there."""
    return Record(*unit.db.execute(_LOAD_NEXT, (unit.key, job_id)).fetchone())


def load_one(unit: UnitOfWork, key: int) -> Record:
    """Return a record that is there."""
    return Record(*unit.db.execute(_LOAD_ONE, (key,)).fetchone())


def remember_error(unit: UnitOfWork, record: Record, error: ErrorInfo) -> None:
    """Add to the error history."""
    unit.db.execute(_ADD_ERROR, (record.key, unit.now_ms, record.epoch, _encode_error(error)))
    if record.failures + record.stalls >= ERRORS_KEPT:
        unit.db.execute(_TRIM_ERRORS, (record.key,))


def read_errors(db: Any, key: int, limit: int = ERRORS_KEPT) -> list[ErrorInfo]:
    """Return the error history, newest first."""
    sql = "SELECT at_ms, start, body FROM errors WHERE job = ? ORDER BY key DESC LIMIT ?"
    return [
        msgspec.structs.replace(read_error(body), at_ms=at_ms, start=start)
        for at_ms, start, body in db.execute(sql, (key, limit)).fetchall()
    ]


def read_error(body: bytes) -> ErrorInfo:
    """Return one entry of it; one that is damaged says so."""
    try:
        return _decode_error(body)
    except (msgspec.MsgspecError, UnicodeError):
        return DAMAGED_ERROR


def add_channel(unit: UnitOfWork, record: Record, channel: str) -> None:
    """Note one more channel of a job."""
    channels = with_channel(record.channels, channel)
    if channels != record.channels:
        record.channels = channels
        unit.db.execute("UPDATE jobs SET channels = ? WHERE key = ?", (channels, record.key))


def with_channel(seen: str | None, channel: str) -> str:
    """Return channels with one more; beyond 64 of them waiters fall back to their poll."""
    if not seen:
        return channel
    if channel in seen or seen.count(" ") + 1 >= CHANNELS_LIMIT:
        return seen
    return f"{seen} {channel}"


def join(unit: UnitOfWork, job_ids: Iterable[str]) -> None:
    """Note that a later enqueue waits for the results too."""
    unit.db.execute(_JOIN, (unit.key, json_list(job_ids)))


def ask_to_stop(unit: UnitOfWork, record: Record) -> None:
    """Note that an active job is to stop."""
    if not record.cancel:
        record.cancel = 1
        unit.db.execute("UPDATE jobs SET cancel = 1 WHERE key = ?", (record.key,))

"""The moves between waiting places, and the ends of jobs.

The ends write state, result, index, counters and the word to waiters in one step.
"""

from __future__ import annotations

import msgspec

from headrace.job import WAITED_RESULT_TTL_MS, ErrorInfo, JobState
from headrace.storage.sqlite.record import ERRORS_KEPT, TERMINAL, Record, pile_of
from headrace.storage.sqlite.unit import UnitOfWork
from headrace.storage.sqlite.wake import tell
from headrace.storage.values import End

MESSAGE_LIMIT = 65_536
"""Longer results are read by the waiter itself."""

_READY = """
UPDATE jobs SET state = 'queued', seq = ?, at = ?, due = NULL, owner = NULL, attempts = ?,
  stalls = ?
WHERE key = ?
"""
_DELAY = """
UPDATE jobs SET state = ?, due = ?, at = ?, owner = NULL, attempts = ?, run = ?, released = ?
WHERE key = ?
"""
_END = """
UPDATE jobs SET state = ?, at = ?, dies = ?, run = ?, result = ?, result_dies = ?, reason = ?,
  error = ?, attempts = ?, stalls = ?, seq = NULL, due = NULL, owner = NULL
WHERE key = ?
"""
_OLD_ERRORS = f"""
DELETE FROM errors WHERE job = ?1 AND key <=
  (SELECT key FROM errors WHERE job = ?1 ORDER BY key DESC LIMIT 1 OFFSET {ERRORS_KEPT})
"""  # noqa: S608

_encode_error = msgspec.json.Encoder().encode


def erase(unit: UnitOfWork, record: Record) -> None:
    """Delete a record whose state is counted no more."""
    record.is_erased = True
    unit.erase(record.key)


def make_ready(unit: UnitOfWork, record: Record, seq: int) -> None:
    """Let a job wait for a worker, at a place that the unit gave out."""
    unit.count(record.state, -1)
    unit.count("queued", 1)
    record.state = "queued"
    unit.write(_READY, (seq, unit.now_ms, record.attempts, record.stalls, record.key))
    unit.wakes.lane(record.lane)


def delay(unit: UnitOfWork, record: Record, state: str, *, due_ms: int, run_ms: int) -> None:
    """Let a job wait for its time."""
    unit.count(record.state, -1)
    unit.count(state, 1)
    record.state = state
    unit.write(
        _DELAY,
        (state, due_ms, unit.now_ms, record.attempts, run_ms, record.unknown_since_ms, record.key),
    )
    unit.wakes.delayed(due_ms, record.lane)


def put_back(unit: UnitOfWork, record: Record) -> None:
    """Send a claimed job back to the head, or end it if it was asked to stop."""
    if record.cancel:
        cancel(unit, record, keep_ms=record.keep_ms)
        return
    make_ready(unit, record, unit.next_head())
    unit.events.add("put_back", record.id, record.task, attempt=record.epoch, worker=record.owner)


def remember_error(unit: UnitOfWork, record: Record, error: ErrorInfo) -> None:
    """Add to the error history."""
    sql = "INSERT INTO errors (job, at, attempt, body) VALUES (?, ?, ?, ?)"
    unit.db.execute(sql, (record.key, unit.now_ms, record.epoch, _encode_error(error)))
    if record.attempts + record.stalls >= ERRORS_KEPT:
        unit.db.execute(_OLD_ERRORS, (record.key,))


def _for_waiters(record: Record, ms: int) -> int:
    """Return how long to keep what a later enqueue has joined: a minute at least."""
    return max(ms, WAITED_RESULT_TTL_MS) if record.joined else ms


def complete(
    unit: UnitOfWork,
    record: Record,
    *,
    result: bytes,
    result_ttl_ms: int,
    keep_ms: int,
    run_ms: int,
) -> None:
    """End a job with its result."""
    result_ttl_ms, keep_ms = _for_waiters(record, result_ttl_ms), _for_waiters(record, keep_ms)
    # A result that outlived its record would pass for the next job's with that id.
    ttl_ms = min(result_ttl_ms, keep_ms)
    kept = result if ttl_ms else None
    purge_at_ms = unit.now_ms + ttl_ms if ttl_ms != keep_ms else None
    _end(
        unit,
        record,
        "completed",
        keep_ms,
        run_ms=run_ms,
        result=kept,
        result_purge_at_ms=purge_at_ms,
    )
    if record.channels:
        is_cut = len(result) > MESSAGE_LIMIT
        whole = None if is_cut else result
        _tell(unit, record, JobState.COMPLETED, result=whole, is_cut=is_cut)


def fail(
    unit: UnitOfWork,
    record: Record,
    reason: str,
    *,
    error: ErrorInfo | None = None,
    run_ms: int = 0,
) -> None:
    """End a job as a dead letter."""
    if error is not None:
        remember_error(unit, record, error)
    kind = error.type if error else ""
    ttl_ms = unit.settings.dead_letter_ttl_ms
    _end(unit, record, "failed", ttl_ms, run_ms=run_ms, reason=reason, error=kind)
    if record.channels:
        _tell(unit, record, JobState.FAILED, reason=reason, error=error)


def cancel(
    unit: UnitOfWork, record: Record, *, keep_ms: int, run_ms: int = 0, reason: str = ""
) -> None:
    """End a job as cancelled; ``could_not_stop`` is the reason of one whose handler goes on."""
    keep_ms = _for_waiters(record, keep_ms)
    _end(unit, record, "cancelled", keep_ms, run_ms=run_ms, reason=reason)
    if record.channels:
        _tell(unit, record, JobState.CANCELLED, reason=reason)


def stall(
    unit: UnitOfWork, record: Record, incarnation: str, error: ErrorInfo, run_ms: int = 0
) -> None:
    """Charge an active job with the death of what ran it: it waits at the head again, or ends."""
    record.stalls += 1
    unit.stats.tally("stalled")
    unit.events.add(
        "stalled",
        record.id,
        record.task,
        attempt=record.epoch,
        worker=incarnation,
        run_ms=run_ms,
        detail=error.type,
    )
    if record.cancel:
        cancel(unit, record, keep_ms=record.keep_ms, run_ms=run_ms)
    elif record.stalls >= record.max_stalls:
        fail(unit, record, "stalled", error=error, run_ms=run_ms)
    else:
        remember_error(unit, record, error)
        make_ready(unit, record, unit.next_head())


def delete(unit: UnitOfWork, record: Record) -> None:
    """Delete a job that nobody wants any more."""
    unit.count(pile_of(record.state), -1)
    if record.state not in TERMINAL and record.channels:
        _tell(unit, record, None)
    erase(unit, record)


def _end(
    unit: UnitOfWork,
    record: Record,
    state: str,
    keep_ms: int,
    *,
    run_ms: int,
    result: bytes | None = None,
    result_purge_at_ms: int | None = None,
    reason: str = "",
    error: str = "",
) -> None:
    unit.count(record.state, -1)
    if record.state in ("scheduled", "retrying"):
        unit.wakes.forget_due()
    record.state = state
    if keep_ms:
        unit.count(pile_of(state), 1)
        now = unit.now_ms
        unit.write(
            _END,
            (
                *(state, now, now + keep_ms, run_ms, result, result_purge_at_ms, reason, error),
                *(record.attempts, record.stalls, record.key),
            ),
        )
    else:
        erase(unit, record)
    unit.stats.tally(state)
    unit.events.add(
        state,
        record.id,
        record.task,
        attempt=record.epoch,
        worker=record.owner,
        run_ms=run_ms,
        detail=reason,
    )


def _tell(
    unit: UnitOfWork,
    record: Record,
    state: JobState | None,
    *,
    reason: str = "",
    result: bytes | None = None,
    error: ErrorInfo | None = None,
    is_cut: bool = False,
) -> None:
    end = End(unit.queue, record.id, state, reason, result, error, is_cut)
    for channel in (record.channels or "").split():
        tell(unit.step, channel, end)

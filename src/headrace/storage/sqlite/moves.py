"""The moves between waiting places, and the ends of jobs.

The ends write state, result, index, counters and the word to waiters in one step.
"""

from __future__ import annotations

import msgspec

from headrace.job import WAITED_RESULT_TTL_MS, ErrorInfo, JobState
from headrace.storage.sqlite.record import ERRORS_KEPT, TERMINAL, Record, pile_of
from headrace.storage.sqlite.unit import View
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


def erase(view: View, record: Record) -> None:
    """Delete a record whose state is counted no more."""
    record.is_erased = True
    view.erase(record.key)


def make_ready(view: View, record: Record, seq: int) -> None:
    """Let a job wait for a worker, at a place that the view gave out."""
    view.count(record.state, -1)
    view.count("queued", 1)
    record.state = "queued"
    view.write(_READY, (seq, view.now, record.attempts, record.stalls, record.key))
    view.wake(record.lane)


def delay(view: View, record: Record, state: str, *, due: int, run_ms: int) -> None:
    """Let a job wait for its time."""
    view.count(record.state, -1)
    view.count(state, 1)
    record.state = state
    view.write(_DELAY, (state, due, view.now, record.attempts, run_ms, record.released, record.key))
    view.note_due(due, record.lane)


def send_back(view: View, record: Record) -> None:
    """Send a claimed job back to the head, or end it if it was asked to stop."""
    if record.cancel:
        cancel(view, record, keep=record.keep)
        return
    make_ready(view, record, view.next_head())
    view.event("put_back", record.id, record.task, attempt=record.epoch, worker=record.owner)


def remember_error(view: View, record: Record, error: ErrorInfo) -> None:
    """Add to the error history."""
    sql = "INSERT INTO errors (job, at, attempt, body) VALUES (?, ?, ?, ?)"
    view.db.execute(sql, (record.key, view.now, record.epoch, _encode_error(error)))
    if record.attempts + record.stalls >= ERRORS_KEPT:
        view.db.execute(_OLD_ERRORS, (record.key,))


def _for_waiters(record: Record, ms: int) -> int:
    """Return how long to keep what a later enqueue has joined: a minute at least."""
    return max(ms, WAITED_RESULT_TTL_MS) if record.joined else ms


def complete(
    view: View, record: Record, *, result: bytes, result_ttl_ms: int, keep_ms: int, run_ms: int
) -> None:
    """End a job with its result."""
    result_ttl_ms, keep_ms = _for_waiters(record, result_ttl_ms), _for_waiters(record, keep_ms)
    # A result that outlived its record would pass for the next job's with that id.
    ttl_ms = min(result_ttl_ms, keep_ms)
    kept = result if ttl_ms else None
    dies = view.now + ttl_ms if ttl_ms != keep_ms else None
    _end(view, record, "completed", keep_ms, run_ms=run_ms, result=kept, result_dies=dies)
    if record.inbox:
        is_cut = len(result) > MESSAGE_LIMIT
        whole = None if is_cut else result
        _tell(view, record, JobState.COMPLETED, result=whole, is_cut=is_cut)


def fail(
    view: View,
    record: Record,
    reason: str,
    *,
    error: ErrorInfo | None = None,
    run_ms: int = 0,
) -> None:
    """End a job as a dead letter."""
    if error is not None:
        remember_error(view, record, error)
    kind = error.type if error else ""
    ttl_ms = view.settings.dead_letter_ttl_ms
    _end(view, record, "failed", ttl_ms, run_ms=run_ms, reason=reason, error=kind)
    if record.inbox:
        _tell(view, record, JobState.FAILED, reason=reason, error=error)


def cancel(view: View, record: Record, *, keep: int, run_ms: int = 0, reason: str = "") -> None:
    """End a job as cancelled; ``could_not_stop`` is the reason of one whose handler goes on."""
    keep_ms = _for_waiters(record, keep)
    _end(view, record, "cancelled", keep_ms, run_ms=run_ms, reason=reason)
    if record.inbox:
        _tell(view, record, JobState.CANCELLED, reason=reason)


def stall(view: View, record: Record, incarnation: str, error: ErrorInfo, run_ms: int = 0) -> None:
    """Charge an active job with the death of what ran it: it waits at the head again, or ends."""
    record.stalls += 1
    view.tally("stalled")
    view.event(
        "stalled",
        record.id,
        record.task,
        attempt=record.epoch,
        worker=incarnation,
        run_ms=run_ms,
        detail=error.type,
    )
    if record.cancel:
        cancel(view, record, keep=record.keep, run_ms=run_ms)
    elif record.stalls >= record.max_stalls:
        fail(view, record, "stalled", error=error, run_ms=run_ms)
    else:
        remember_error(view, record, error)
        make_ready(view, record, view.next_head())


def delete(view: View, record: Record) -> None:
    """Delete a job that nobody wants any more."""
    view.count(pile_of(record.state), -1)
    if record.state not in TERMINAL and record.inbox:
        _tell(view, record, None)
    erase(view, record)


def _end(
    view: View,
    record: Record,
    state: str,
    keep_ms: int,
    *,
    run_ms: int,
    result: bytes | None = None,
    result_dies: int | None = None,
    reason: str = "",
    error: str = "",
) -> None:
    view.count(record.state, -1)
    if record.state in ("scheduled", "retrying"):
        view.forget_due()
    record.state = state
    if keep_ms:
        view.count(pile_of(state), 1)
        now = view.now
        view.write(
            _END,
            (
                *(state, now, now + keep_ms, run_ms, result, result_dies, reason, error),
                *(record.attempts, record.stalls, record.key),
            ),
        )
    else:
        erase(view, record)
    view.tally(state)
    view.event(
        state,
        record.id,
        record.task,
        attempt=record.epoch,
        worker=record.owner,
        run_ms=run_ms,
        detail=reason,
    )


def _tell(
    view: View,
    record: Record,
    state: JobState | None,
    *,
    reason: str = "",
    result: bytes | None = None,
    error: ErrorInfo | None = None,
    is_cut: bool = False,
) -> None:
    end = End(view.queue, record.id, state, reason, result, error, is_cut)
    for channel in (record.inbox or "").split():
        tell(view, channel, end)


def tell(view: View, channel: str, end: End) -> None:
    """Tell a waiter of this process after the commit, one of another by a message."""
    process = channel.partition(".")[0]
    effects = view.step.effects
    if process == view.step.process:
        effects.ends.append((channel, end))
        return
    sql = "INSERT INTO messages (process, channel, at, body) VALUES (?, ?, ?, ?)"
    view.db.execute(sql, (process, channel, view.now, msgspec.msgpack.encode(end)))
    effects.is_post = True

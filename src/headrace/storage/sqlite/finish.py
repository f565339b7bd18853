"""How jobs end: what is kept of each, and the word to waiters."""

from __future__ import annotations

import msgspec

from headrace.job import ErrorInfo, JobState
from headrace.request import JobRequest
from headrace.storage.limits import MESSAGE_LIMIT_BYTES, WAITED_RESULT_TTL_MS
from headrace.storage.lines import NO_ERROR, error_words
from headrace.storage.sqlite import fail_jobs, successors
from headrace.storage.sqlite.moves import ERASED, Ended, move
from headrace.storage.sqlite.record import TERMINAL, Record, remember_error
from headrace.storage.sqlite.unit import UnitOfWork
from headrace.storage.sqlite.wake import notify
from headrace.storage.values import End


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
    result_purge_at_ms = unit.now_ms + ttl_ms if ttl_ms != keep_ms else None
    end = Ended("completed", keep_ms, run_ms, kept, result_purge_at_ms)
    _end(unit, record, end, str(record.created_ms))
    if record.channels:
        is_cut = len(result) > MESSAGE_LIMIT_BYTES
        whole = None if is_cut else result
        _notify(unit, record, JobState.COMPLETED, result=whole, is_cut=is_cut)


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
    words = error_words(error) if error else NO_ERROR
    error_type, _, _ = words.partition("\t")
    keep_ms = unit.settings.dead_letter_ttl_ms
    end = Ended("failed", keep_ms, run_ms, reason=reason, error=error_type)
    coming = fail_jobs.coming_of(unit, record, reason, error)
    _end(unit, record, end, f"{reason}\t{words}\t{record.created_ms}", coming)
    if record.channels:
        _notify(unit, record, JobState.FAILED, reason=reason, error=error)


def cancel(
    unit: UnitOfWork, record: Record, *, keep_ms: int, run_ms: int = 0, reason: str = ""
) -> None:
    """End a job as cancelled; ``could_not_stop`` is the reason of one whose handler goes on."""
    keep_ms = _for_waiters(record, keep_ms)
    end = Ended("cancelled", keep_ms, run_ms, reason=reason)
    _end(unit, record, end, f"{reason}\t{record.created_ms}")
    if record.channels:
        _notify(unit, record, JobState.CANCELLED, reason=reason)


def cancel_next(unit: UnitOfWork, record: Record) -> bool:
    """End the successor of an active job as cancelled; return whether there was one."""
    successor = successors.drop(unit, record)
    if successor is not None and successor.channels:
        _notify(unit, successor, JobState.CANCELLED, reason="next")
    return successor is not None


def delete(unit: UnitOfWork, record: Record) -> None:
    """Delete a job that nobody wants any more."""
    if record.state not in TERMINAL and record.channels:
        _notify(unit, record, None)
    detail = f"{record.state}\t{record.created_ms}"
    move(unit, record, ERASED, "purged", detail=detail)


def _for_waiters(record: Record, ms: int) -> int:
    """Return how long to keep what a later enqueue has joined: a minute at least."""
    return max(ms, WAITED_RESULT_TTL_MS) if record.joined else ms


def _end(
    unit: UnitOfWork, record: Record, end: Ended, detail: str, coming: JobRequest | None = None
) -> None:
    unit.stats.tally(end.state)
    if record.next_update:
        end = msgspec.structs.replace(end, keep_ms=0)
    move(unit, record, end, end.state, worker=record.owner, run_ms=end.run_ms, detail=detail)
    if coming is not None:
        fail_jobs.enter(unit, coming, failed=record.id)
    if record.next_update:
        successors.enter(unit, record.id)


def _notify(
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
        notify(unit.step, channel, end)

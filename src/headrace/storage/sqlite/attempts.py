"""What becomes of an active job whose attempt brought no outcome of its own."""

from __future__ import annotations

from headrace.job import ErrorInfo
from headrace.storage.lines import error_words
from headrace.storage.sqlite import finish, gates, strikes, successors
from headrace.storage.sqlite.moves import Delayed, Ready, move, park
from headrace.storage.sqlite.record import Record, Span, load, remember_error
from headrace.storage.sqlite.unit import UnitOfWork

_LOST = """
SELECT id FROM jobs INDEXED BY jobs_id
WHERE queue = ?1 AND id > ?2 AND id <= ?3 AND state = 'active'
  AND (owner IS NULL OR owner NOT IN (SELECT key FROM incarnations WHERE queue = ?1))
"""


def wait(
    unit: UnitOfWork,
    record: Record,
    place: Ready | Delayed,
    event: str = "",
    *,
    run_ms: int = 0,
    detail: str = "",
) -> None:
    """Let an active job wait again, as `move` does; a successor changes it, and is gone."""
    move(unit, record, place, event, worker=record.owner, run_ms=run_ms, detail=detail)
    successors.take_up(unit, record)


def put_back(unit: UnitOfWork, record: Record) -> None:
    """Return a claimed job to the head, or end it if it was asked to stop."""
    if record.cancel:
        finish.cancel(unit, record, keep_ms=record.keep_ms)
    else:
        wait(unit, record, Ready(unit.next_head()), "put_back")


def lay_aside(unit: UnitOfWork, record: Record, strike: str) -> None:
    """Have a job wait in the line of a strike, before all others; put it back if that is lifted."""
    if gates.stands(unit.db, unit.key, strike):
        park(unit, record, strike, strikes.next_front(unit))
        successors.take_up(unit, record)
    else:
        put_back(unit, record)


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
        start=record.epoch,
        worker=incarnation,
        run_ms=run_ms,
        detail=error_words(error),
    )
    if record.cancel:
        finish.cancel(unit, record, keep_ms=record.keep_ms, run_ms=run_ms)
    elif record.stalls >= record.max_stalls:
        finish.fail(unit, record, "stalled", error=error, run_ms=run_ms)
    else:
        remember_error(unit, record, error)
        wait(unit, record, Ready(unit.next_head()))


def mend(unit: UnitOfWork, span: Span) -> int:
    """Put back those of some ids whose incarnation nobody knows; return how many they were."""
    ids = [job_id for (job_id,) in unit.db.execute(_LOST, (unit.key, *span)).fetchall()]
    lost = load(unit, ids) if ids else {}
    for record in lost.values():
        put_back(unit, record)
    return len(lost)

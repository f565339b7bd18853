"""``settle``: writes the outcomes of attempts, each only for the claim that owns it."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import StaleCall
from headrace.outcome import (
    UNKNOWN_TASK_LIMIT_MS,
    Cancelled,
    Completed,
    Failed,
    PutBack,
    Retried,
    Stalled,
)
from headrace.storage.sqlite import moves
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.incarnation import find
from headrace.storage.sqlite.record import TERMINAL, Record, load
from headrace.storage.sqlite.unit import View, find_view
from headrace.storage.values import CallId, Settlement


def settle(
    step: Step, name: QueueName, settlements: Sequence[Settlement], call: CallId
) -> list[bool] | None:
    """Write outcomes; a repeated call answers from memory."""
    view = find_view(step, name)
    me = find(view, call.client) if view else None
    if view is None or me is None:
        return None
    if call.number < me.settle:
        raise StaleCall(f"settle call {call.number} is older than {me.settle}")
    if call.number == me.settle:
        return [letter == "1" for letter in me.settled]
    known = load(view, [settlement.job_id for settlement in settlements])
    prefix = call.client + "/"
    verdicts = [
        _settle(view, known.get(settlement.job_id), settlement, prefix)
        for settlement in settlements
    ]
    settled = "".join(["1" if verdict else "0" for verdict in verdicts])
    sql = "UPDATE workers SET settle = ?, settled = ? WHERE key = ?"
    step.db.execute(sql, (call.number, settled, me.key))
    view.close()
    return verdicts


def _settle(view: View, record: Record | None, settlement: Settlement, prefix: str) -> bool:
    if record is None or record.is_erased:
        return True
    claim = settlement.claim
    # A claim is of no use to another incarnation.
    if record.nonce != claim.nonce or record.epoch != claim.epoch:
        return False
    if not record.nonce.startswith(prefix):
        return False
    if record.state != "active":
        return record.state in TERMINAL
    if record.stalls:
        view.wake_all()  # another on its last chance may wait for this one's end
    outcome = settlement.outcome
    run_ms = settlement.run_ms
    if not isinstance(outcome, PutBack):
        view.observe("run", run_ms)
    if isinstance(outcome, Completed):
        moves.complete(
            view,
            record,
            result=outcome.result,
            result_ttl_ms=outcome.result_ttl_ms,
            keep_ms=outcome.keep_ms,
            run_ms=run_ms,
        )
    else:
        _settle_other(view, record, outcome, run_ms)
    return True


def _settle_other(
    view: View,
    record: Record,
    outcome: Retried | Failed | Cancelled | PutBack | Stalled,
    run_ms: int,
) -> None:
    if record.cancel and isinstance(outcome, Retried | PutBack):
        run_ms = 0 if isinstance(outcome, PutBack) else run_ms
        moves.cancel(view, record, keep=record.keep, run_ms=run_ms)
        return
    match outcome:
        case Retried():
            _retry(view, record, outcome, run_ms)
        case Failed(reason, error, is_attempt):
            # Only a handler's own error is an attempt used.
            record.attempts += is_attempt
            moves.fail(view, record, reason.value, error=error, run_ms=run_ms)
        case Cancelled(keep_ms, reason):
            moves.cancel(view, record, keep=keep_ms, run_ms=run_ms, reason=reason)
        case PutBack():
            _release(view, record, outcome)
        case Stalled(error):
            moves.stall(view, record, record.owner, error, run_ms)


def _retry(view: View, record: Record, outcome: Retried, run_ms: int) -> None:
    record.attempts += 1
    moves.remember_error(view, record, outcome.error)
    view.tally("retried")
    view.event(
        "retrying",
        record.id,
        record.task,
        attempt=record.epoch,
        worker=record.owner,
        run_ms=run_ms,
        detail=outcome.error.type,
    )
    moves.delay(view, record, "retrying", due=view.now + outcome.delay_ms, run_ms=run_ms)


def _release(view: View, record: Record, outcome: PutBack) -> None:
    if record.released is None:
        record.released = view.now
    if view.now - record.released > UNKNOWN_TASK_LIMIT_MS:
        moves.fail(view, record, "unknown_task", error=outcome.error)
        return
    view.event("put_back", record.id, record.task, attempt=record.epoch, worker=record.owner)
    moves.delay(view, record, "scheduled", due=view.now + outcome.delay_ms, run_ms=0)

"""``settle``: writes the outcomes of attempts, each only for the claim that owns it."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import StaleCall
from headrace.outcome import (
    Cancelled,
    Completed,
    Failed,
    PutBack,
    Retried,
    Snoozed,
    Stalled,
    Struck,
)
from headrace.storage.lines import error_words, words_of
from headrace.storage.sqlite import attempts, finish, lines
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.incarnations import find, note_settle
from headrace.storage.sqlite.moves import Delayed
from headrace.storage.sqlite.record import (
    TERMINAL,
    Record,
    load,
    note_put_back,
    read_put_back,
    remember_error,
)
from headrace.storage.sqlite.unit import UnitOfWork, find_unit
from headrace.storage.values import CallId, Settlement


def settle(
    step: Step, name: QueueName, settlements: Sequence[Settlement], call: CallId
) -> list[bool] | None:
    """Write outcomes; a repeated call answers from memory."""
    unit = find_unit(step, name)
    me = find(unit, call.client) if unit else None
    if unit is None or me is None:
        return None
    if call.number < me.settle:
        raise StaleCall(f"settle call {call.number} is older than {me.settle}")
    if call.number == me.settle:
        return [letter == "1" for letter in me.settled]
    known = load(unit, [settlement.job_id for settlement in settlements])
    prefix = call.client + "/"
    verdicts = [
        _settle(unit, known.get(settlement.job_id), settlement, prefix)
        for settlement in settlements
    ]
    settled = "".join(["1" if verdict else "0" for verdict in verdicts])
    note_settle(unit, me, call.number, settled)
    lines.close(unit)
    return verdicts


def _settle(unit: UnitOfWork, record: Record | None, settlement: Settlement, prefix: str) -> bool:
    if record is None:
        return True
    if record.is_erased:
        return not record.next_update  # of a successor that has come in this is no claim
    claim = settlement.claim
    # A claim is of no use to another incarnation.
    if record.nonce != claim.nonce or record.epoch != claim.epoch:
        return False
    if not record.nonce.startswith(prefix):
        return False
    if record.state != "active":
        return record.state in TERMINAL
    if record.stalls:
        unit.wakes.all()  # another on its last chance may wait for this one's end
    outcome = settlement.outcome
    run_ms = settlement.run_ms
    if not isinstance(outcome, PutBack | Struck):
        unit.stats.observe("run", run_ms)
    if isinstance(outcome, Completed):
        finish.complete(
            unit,
            record,
            result=outcome.result,
            result_ttl_ms=outcome.result_ttl_ms,
            keep_ms=outcome.keep_ms,
            run_ms=run_ms,
        )
    else:
        _settle_other(unit, record, outcome, run_ms)
    return True


def _settle_other(
    unit: UnitOfWork,
    record: Record,
    outcome: Retried | Snoozed | Failed | Cancelled | PutBack | Stalled | Struck,
    run_ms: int,
) -> None:
    if record.cancel and isinstance(outcome, Retried | Snoozed | PutBack | Struck):
        run_ms = 0 if isinstance(outcome, PutBack | Struck) else run_ms
        finish.cancel(unit, record, keep_ms=record.keep_ms, run_ms=run_ms)
        return
    match outcome:
        case Retried():
            _retry(unit, record, outcome, run_ms)
        case Snoozed():
            _snooze(unit, record, outcome, run_ms)
        case Failed(reason, error, is_attempt):
            # Only a handler's own error is an attempt used.
            record.failures += is_attempt
            finish.fail(unit, record, reason.value, error=error, run_ms=run_ms)
        case Cancelled(keep_ms, reason):
            finish.cancel(unit, record, keep_ms=keep_ms, run_ms=run_ms, reason=reason)
        case PutBack():
            _put_back(unit, record, outcome)
        case Stalled(error):
            attempts.stall(unit, record, record.owner, error, run_ms)
        case Struck(strike):
            attempts.lay_aside(unit, record, strike)


def _retry(unit: UnitOfWork, record: Record, outcome: Retried, run_ms: int) -> None:
    record.failures += 1
    remember_error(unit, record, outcome.error)
    unit.stats.tally("retried")
    due_ms = unit.now_ms + outcome.delay_ms
    attempts.wait(
        unit,
        record,
        Delayed("retrying", due_ms, run_ms),
        "retrying",
        run_ms=run_ms,
        detail=f"{error_words(outcome.error)}\t{due_ms}",
    )


def _snooze(unit: UnitOfWork, record: Record, outcome: Snoozed, run_ms: int) -> None:
    record.put_back = None  # a worker has run it
    due_ms = unit.now_ms + outcome.delay_ms
    attempts.wait(
        unit,
        record,
        Delayed("scheduled", due_ms, run_ms),
        "snoozed",
        run_ms=run_ms,
        detail=words_of(outcome.reason, due_ms),
    )


def _put_back(unit: UnitOfWork, record: Record, outcome: PutBack) -> None:
    """Let a job wait for another worker, unless it has done so for too long."""
    before = read_put_back(record.put_back, record.failures + record.stalls)
    since_ms = unit.now_ms if before is None else before.at_ms
    if unit.now_ms - since_ms > outcome.limit_ms:
        finish.fail(unit, record, outcome.reason.value, error=outcome.error)
        return
    note_put_back(record, since_ms, outcome.error)
    due_ms = unit.now_ms + outcome.delay_ms
    attempts.wait(
        unit,
        record,
        Delayed("scheduled", due_ms),
        "put_back",
        detail=words_of(outcome.reason.value, due_ms),
    )

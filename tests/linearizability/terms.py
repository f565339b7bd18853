"""What the specification says, in the storage's terms, and the other way round."""

from __future__ import annotations

from headrace import outcome
from headrace.job import ErrorInfo, FailReason, JobRecord
from headrace.outcome import Cancelled, Completed, Failed, Outcome, Retried
from headrace.request import JobRequest
from headrace.update import read_update
from tests.linearizability.spec import LASTING, NONE, Enqueue, Reply, Seen, Settle

ERROR = ErrorInfo(type="ValueError", message="no such address")


def job_request(job_id: str, queue: str, call: Enqueue) -> JobRequest:
    """Return the job of an enqueue."""
    return JobRequest(
        id=job_id,
        queue=queue,
        task="send",
        payload=call.payload.encode(),
        keep_ms=call.keep_ms,
        max_stalls=call.max_stalls,
        delay_ms=LASTING if call.is_delayed else 0,
        replaces_ended=call.replaces_ended,
        update=read_update(call.update) if call.update else None,
    )


def seen(record: JobRecord | None) -> Reply:
    """Return what a record says."""
    if record is None:
        return NONE
    return Seen(
        record.state,
        record.starts,
        record.failures,
        record.stalls,
        (record.payload or b"").decode(),
        None if record.result is None else record.result.decode(),
        record.cancel_requested and record.state == "active",
        record.has_next,
    )


def outcome_of(call: Settle) -> Outcome:
    """Return the outcome that a settle writes."""
    match call.outcome:
        case "completed":
            return Completed(call.result.encode(), call.keep_ms, call.keep_ms)
        case "retried":
            return Retried(0, ERROR)
        case "failed":
            return Failed(FailReason.EXHAUSTED, ERROR)
        case "cancelled":
            return Cancelled(call.keep_ms)
        case "released":
            return outcome.PutBack(0, ERROR)
        case "snoozed":
            return outcome.Snoozed(0)

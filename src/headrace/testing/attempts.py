"""What an attempt came to, as a test sees it: with the handler's own exception and result."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, assert_never

import msgspec

from headrace.app import App
from headrace.codec import read
from headrace.description import describe, is_a, told
from headrace.errors import (
    InvalidArguments,
    JobError,
    JobFailed,
    ResultMismatch,
    RetryLater,
    Snooze,
    UnknownTask,
)
from headrace.job import ClaimedJob, ErrorInfo, FailReason
from headrace.outcome import (
    Cancelled,
    Completed,
    Failed,
    Outcome,
    PutBack,
    Retried,
    Snoozed,
    Stalled,
    Struck,
)


class FinishedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt that a kit ran.

    Attributes:
        job_id: the job.
        task: its task's name.
        queue: its queue.
        start: which start of the job this was, from 1.
        outcome: ``completed``, ``retrying``, ``snoozed``, ``failed``, ``cancelled``, ``put_back``
            for a task that the app doesn't know or arguments of another shape than it takes,
            ``stalled`` if the process that ran it died, or ``struck`` if a strike has its handler
            not run.
        result: what the handler returned, as it came back from its encoded form.
        error: what the handler raised, or what it comes to; None if all went well.
        reason: why it became a dead letter, one of `FailReason`, was snoozed, or by which strike
            it waits; else empty.
        retry_in: seconds until it runs again, 0 if it does not.
    """

    job_id: str
    task: str
    queue: str
    start: int
    outcome: str
    result: Any = None
    error: Exception | None = None
    reason: str = ""
    retry_in: float = 0.0

    @property
    def is_error(self) -> bool:
        """Whether its handler failed, or can't take its arguments.

        To ask for another run by `RetryLater` or `Snooze` is no failure.
        """
        is_misfit = self.outcome == "put_back" and isinstance(self.error, InvalidArguments)
        failed = self.outcome in ("failed", "retrying") or is_misfit
        return failed and not isinstance(self.error, RetryLater)


def read_attempt(
    app: App[Any], job: ClaimedJob, outcome: Outcome, raised: BaseException | None
) -> FinishedAttempt:
    """Return what an attempt came to.

    Args:
        app: knows the type of the result.
        job: what was claimed.
        outcome: what the executor made of it.
        raised: what left the handler and its middleware.
    """
    name = reason = ""
    delay_ms = 0
    result: Any = None
    error: Exception | None = None
    match outcome:
        case Completed(data):
            name = "completed"
            result, error = _result(app, job, data)
        case Cancelled(_, reason):
            name = "cancelled"
        case Stalled(info):
            name, error = "stalled", _error(job, info, raised, reason)
        case Snoozed(delay_ms, reason):
            name, error = "snoozed", _snooze(delay_ms, reason, raised)
        case Struck(reason):
            name = "struck"
        case PutBack(delay_ms, info, _, why):
            name = "put_back"
            is_unknown = why is FailReason.UNKNOWN_TASK
            error = UnknownTask(info.message) if is_unknown else InvalidArguments(info.message)
        case Retried(delay_ms, info):
            name, error = "retrying", _error(job, info, raised, reason)
        case Failed(why, info):
            name, reason = "failed", why.value
            error = _error(job, info, raised, reason)
        case _:
            assert_never(outcome)
    return FinishedAttempt(
        job_id=job.id,
        task=job.task,
        queue=job.queue,
        start=job.claim.epoch,
        outcome=name,
        result=result,
        error=error,
        reason=reason,
        retry_in=delay_ms / 1000,
    )


def _result(app: App[Any], job: ClaimedJob, data: bytes) -> tuple[Any, JobError | None]:
    try:
        return app.tasks[job.task].signature.decode_result(data), None
    except BaseException as error:  # the code of its types may raise anything
        wrong = ResultMismatch(
            f"{job.task} returned what is not of the type that it declares: {told(error)}",
            job_id=job.id,
            queue=job.queue,
        )
        return read(app.codec.decoder(Any), data), wrong


def _snooze(delay_ms: int, reason: str, raised: BaseException | None) -> Snooze:
    if raised is not None and is_a(raised, Snooze):
        return raised
    return Snooze(delay_ms / 1000, reason)


def _error(
    job: ClaimedJob, info: ErrorInfo, raised: BaseException | None, reason: str
) -> Exception:
    """Return the exception itself where there is one, else one that says what was recorded."""
    if raised is not None and is_a(raised, Exception):
        own = describe(raised, job.claim.epoch)
        if (own.type, own.message) == (info.type, info.message):
            return raised
    if info.type == "TimeoutError":
        return TimeoutError(info.message)
    # The handler was never called, its result can't be stored, its retry strategy failed, or its
    # process died.
    return JobFailed(
        f"an attempt of {job.task} failed: {info.type}: {info.message}",
        job_id=job.id,
        queue=job.queue,
        reason=reason,
        error_type=info.type,
        error_message=info.message,
        traceback=info.traceback,
    )


def raise_first(attempts: list[FinishedAttempt]) -> None:
    """Raise the error of the first attempt whose handler failed."""
    for attempt in attempts:
        if attempt.is_error and attempt.error is not None:
            with suppress(BaseException):  # it may take no notes
                attempt.error.add_note(
                    f"raised by start {attempt.start} of {attempt.task}, job "
                    f"{attempt.job_id!r}, which is {attempt.outcome} now"
                )
            raise attempt.error

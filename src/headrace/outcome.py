"""What an attempt came to, and how a handler's error turns into it. No I/O, no storage."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from headrace.clock import duration_ms
from headrace.description import describe, is_a, message_of
from headrace.errors import (
    FailPermanently,
    InvalidOption,
    RetryLater,
    Signal,
    Snooze,
    SnoozeLimit,
)
from headrace.job import ErrorInfo, FailReason
from headrace.plain import one_line
from headrace.retry import Retry, RetryFunction, RetryRules

UNKNOWN_TASK_LIMIT_MS = 24 * 3_600_000

SNOOZE_STARTS = 1_000
"""At each start of a multiple of this number a job can't snooze.

No storage has to count how often one did, and a dead letter that is redriven has as many again.
"""

SNOOZE_REASON_LIMIT = 200


class Completed(msgspec.Struct, frozen=True, tag=True):
    """The handler returned. ``result`` is encoded; a TTL of 0 keeps nothing."""

    result: bytes
    result_ttl_ms: int
    keep_ms: int


class Retried(msgspec.Struct, frozen=True, tag=True):
    """The handler failed and is to run again after a wait."""

    delay_ms: int
    error: ErrorInfo


class Snoozed(msgspec.Struct, frozen=True, tag=True):
    """The handler asked to run again after a wait, which is no failure of its."""

    delay_ms: int
    reason: str = ""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The job becomes a dead letter. ``is_attempt``: the handler itself failed, so it counts."""

    reason: FailReason
    error: ErrorInfo
    is_attempt: bool = True


class Cancelled(msgspec.Struct, frozen=True, tag=True):
    """The job was asked to stop and did; ``reason``: ``could_not_stop`` if its handler goes on."""

    keep_ms: int
    reason: str = ""


class PutBack(msgspec.Struct, frozen=True, tag=True):
    """The job waits for another worker, free of charge: one that knows its task or its arguments.

    ``error`` says why, and is shown meanwhile. Over ``limit_ms`` after the first of a row the job
    becomes a dead letter with it, of this ``reason``. A row ends where a handler has run.
    """

    delay_ms: int
    error: ErrorInfo
    limit_ms: int = UNKNOWN_TASK_LIMIT_MS
    reason: FailReason = FailReason.UNKNOWN_TASK


class Stalled(msgspec.Struct, frozen=True, tag=True):
    """The process that ran the attempt died of it: one stall, as when a worker dies.

    The job goes back to the head of its queue, or becomes a dead letter ``stalled`` when it has
    stalled as often as it may.
    """

    error: ErrorInfo


class Struck(msgspec.Struct, frozen=True, tag=True):
    """A strike meets the job by its arguments: it waits until that is lifted, free of charge.

    ``strike`` is the strike's id. If it stands no more, the job goes back to the head of its queue.
    """

    strike: str


Outcome = Completed | Retried | Snoozed | Failed | Cancelled | PutBack | Stalled | Struck
"""What an attempt came to."""


def decide(
    error: BaseException,
    *,
    start: int,
    errors_before: int,
    max_attempts: int,
    retry: Retry | RetryFunction,
    rules: RetryRules,
    draw: Callable[[], float],
) -> Retried | Snoozed | Failed:
    """Return what a handler's exception comes to.

    Args:
        error: what the handler raised.
        start: which start of the job this was.
        errors_before: handler errors before this one.
        max_attempts: handler errors after which the job fails.
        retry: how long to wait.
        rules: which errors are worth another attempt; signals ask for one by themselves.
        draw: source of random numbers from 0 to 1.
    """
    if is_a(error, Snooze):
        return _snoozed(error, start)
    info = describe(error, start)
    if is_a(error, FailPermanently) or (not is_a(error, Signal) and rules.is_permanent(error)):
        return Failed(FailReason.PERMANENT, info)
    if errors_before + 1 >= max_attempts:
        return Failed(FailReason.EXHAUSTED, info)
    try:
        delay_ms = _delay_ms(error, errors_before + 1, retry, draw)
    except BaseException as broken:  # a strategy or a delay of the user's own may raise anything
        return Failed(FailReason.PERMANENT, describe(broken, start))
    return Retried(delay_ms, info)


def _snoozed(error: Snooze, start: int) -> Snoozed | Failed:
    if start % SNOOZE_STARTS == 0:
        limit = SnoozeLimit(
            f"the handler asked to snooze at start {start:,} of its job: at every "
            f"{SNOOZE_STARTS:,}th it has to end; redrive the job if it may go on"
        )
        limit.__cause__ = error
        return Failed(FailReason.EXHAUSTED, describe(limit, start), is_attempt=False)
    try:
        delay_ms = duration_ms(error.delay, name="Snooze.delay")
    except BaseException as broken:  # the delay is the user's own, and its code may raise anything
        return Failed(FailReason.PERMANENT, describe(broken, start))
    return Snoozed(delay_ms, one_line(message_of(error))[:SNOOZE_REASON_LIMIT])


def _delay_ms(
    error: BaseException, errors: int, retry: Retry | RetryFunction, draw: Callable[[], float]
) -> int:
    if is_a(error, RetryLater):
        return duration_ms(error.delay, name="RetryLater.delay")
    try:
        wait = retry.delay(errors, draw) if isinstance(retry, Retry) else retry(errors, error)
        return duration_ms(wait, name="retry")
    except InvalidOption as broken:
        raise InvalidOption(f"the task's retry strategy returned a bad delay: {broken}") from error

"""Runs one handler: an attempt goes in, an outcome comes out; the storage is never touched.

Here is one plain asyncio task an attempt, and one way to stop it whatever the cause: a timer and a
task group each would halve the rate (26,000 to 29,000 attempts/s against 58,000 to 63,000 without a
queue).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

import msgspec

from headrace.codec import ResultTooLarge, encode_result
from headrace.context import Context, enter
from headrace.errors import NotSerializable
from headrace.job import (
    DEFAULT_KEEP_MS,
    DEFAULT_MAX_ATTEMPTS,
    ClaimedJob,
    ErrorInfo,
    FailReason,
    JobOptions,
)
from headrace.middleware import CallNext, Middleware, wrap
from headrace.outcome import Cancelled, Completed, Failed, Outcome, Released, decide, describe
from headrace.retry import Retry, RetryFunction
from headrace.task import Task

RELEASE_S = (5.0, 30.0)
"""How long a job of an unknown task waits for a worker that knows it: drawn from this range."""

_no_options = JobOptions()
_options_decoder = msgspec.json.Decoder(JobOptions)


class StopReason(StrEnum):
    """Why an attempt is asked to stop."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    FENCED = "fenced"
    SHUTDOWN = "shutdown"


class Attempt:
    """One running handler.

    Attributes:
        job: what was claimed.
        reason: why it was asked to stop first, None if it was not.
    """

    __slots__ = ("_runner", "job", "reason", "started_at")

    def __init__(self, job: ClaimedJob) -> None:
        self.job: ClaimedJob = job
        self.reason: StopReason | None = None
        self.started_at: float = time.monotonic()
        self._runner: asyncio.Task[Outcome | None] | None = None

    def start(self, runner: asyncio.Task[Outcome | None]) -> None:
        """Note the asyncio task that runs it."""
        self._runner = runner

    def stop(self, reason: StopReason) -> None:
        """Cancel the handler; the first reason counts, but fencing overrides all."""
        if self.reason is None or reason is StopReason.FENCED:
            self.reason = reason
        if self._runner is not None:
            self._runner.cancel()

    @property
    def run_ms(self) -> int:
        """How long it has run."""
        return round((time.monotonic() - self.started_at) * 1000)


Done = Callable[[Attempt, Outcome | None], None]
"""Takes an attempt's outcome; None: there is nothing to record, for it was fenced or shut down."""


class Executor:
    """Runs attempts of a set of tasks.

    Args:
        tasks: by name.
        middleware: around every handler, the first outermost.
        state: what the lifespan yielded.
        draw: source of random numbers from 0 to 1, for the waits of retries.
    """

    def __init__(
        self,
        tasks: Mapping[str, Task[..., Any]],
        *,
        middleware: Sequence[Middleware],
        state: Any,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._tasks = tasks
        self._middleware = tuple(middleware)
        self._state = state
        self._draw = draw

    def start(self, job: ClaimedJob, done: Done) -> Attempt:
        """Start an attempt; ``done`` is called once with its outcome, however it ends."""
        attempt = Attempt(job)
        # The task is kept by the attempt, which the caller keeps: it can't be collected half-way.
        runner = asyncio.get_running_loop().create_task(self._run(attempt))
        runner.add_done_callback(partial(_ended, attempt, done))
        attempt.start(runner)
        return attempt

    async def _run(self, attempt: Attempt) -> Outcome | None:
        job = attempt.job
        task = self._tasks.get(job.task)
        if task is None:
            return _unknown(job)
        try:
            options = _options_decoder.decode(job.options) if job.options else _no_options
            args, kwargs = task.signature.decode(job.payload)
        except Exception as error:  # whatever is stored there, the worker lives
            info = describe(error, job.claim.epoch)
            return Failed(FailReason.UNDECODABLE, info, is_attempt=False)
        settings = task.settings
        limits = Limits(
            max_attempts=options.max_attempts or settings.max_attempts,
            timeout_ms=options.timeout_ms or settings.timeout_ms or 0,
            retry=options.retry or settings.retry,
            draw=self._draw,
            keep_ms=settings.keep_ms if options.keep_ms is None else options.keep_ms,
        )
        context: Context[Any] = Context(
            job,
            max_attempts=limits.max_attempts,
            timeout=limits.timeout_ms / 1000 or None,
            headers=options.headers,
            state=self._state,
        )
        enter(context)
        if task.signature.injected_name:
            args = (context, *args)
        handler: CallNext = partial(task.function, *args, **kwargs)
        if self._middleware:
            handler = wrap(self._middleware, context, handler)
        try:
            result = await _call(attempt, limits.timeout_ms, handler)
        except BaseException as error:  # SystemExit of a handler must not end the worker
            return _outcome_of(error, attempt, limits)
        ttl_ms = settings.result_ttl_ms if options.result_ttl_ms is None else options.result_ttl_ms
        return _completed(result, ttl_ms, limits.keep_ms, job.claim.epoch)


async def _call(attempt: Attempt, timeout_ms: int, handler: CallNext) -> Any:
    if not timeout_ms:
        return await handler()
    loop = asyncio.get_running_loop()
    timer = loop.call_later(timeout_ms / 1000, attempt.stop, StopReason.TIMEOUT)
    try:
        return await handler()
    finally:
        timer.cancel()


class Limits(NamedTuple):
    """What one attempt may take, from its job's options or its task's."""

    max_attempts: int
    timeout_ms: int
    retry: Retry | RetryFunction
    draw: Callable[[], float]
    keep_ms: int


def _ended(attempt: Attempt, done: Done, runner: asyncio.Task[Outcome | None]) -> None:
    """Take the outcome, also of an attempt that was stopped before its first step."""
    try:
        outcome = runner.result()
    except (Exception, asyncio.CancelledError) as error:
        outcome = _outcome_of(error, attempt, _LAST_RESORT)
    done(attempt, outcome)


_LAST_RESORT = Limits(DEFAULT_MAX_ATTEMPTS, 0, Retry(), random.random, DEFAULT_KEEP_MS)


def _unknown(job: ClaimedJob) -> Outcome:
    info = ErrorInfo(
        type="UnknownTask",
        message=f"no worker of this queue knows the task {job.task!r}",
        attempt=job.claim.epoch,
    )
    # Drawn at random, so that a rolling deploy's old jobs don't all come back at one instant.
    return Released(round(random.uniform(*RELEASE_S) * 1000), info)  # noqa: S311


def _completed(result: Any, result_ttl_ms: int, keep_ms: int, attempt: int) -> Outcome:
    try:
        return Completed(encode_result(result), result_ttl_ms, keep_ms)
    except ResultTooLarge as error:
        return Failed(FailReason.RESULT_TOO_LARGE, describe(error, attempt))
    except NotSerializable as error:
        # To run it again would not make the result any better.
        return Failed(FailReason.PERMANENT, describe(error, attempt))


def _outcome_of(error: BaseException, attempt: Attempt, limits: Limits) -> Outcome | None:
    """Return what an error that left the handler comes to, given why it may have been stopped."""
    if attempt.reason is StopReason.CANCEL:
        return Cancelled(limits.keep_ms)
    if attempt.reason in (StopReason.FENCED, StopReason.SHUTDOWN):
        return None
    if attempt.reason is StopReason.TIMEOUT and isinstance(error, asyncio.CancelledError):
        timed_out = TimeoutError(f"the attempt took longer than its {limits.timeout_ms / 1000:g} s")
        error = timed_out.with_traceback(error.__traceback__)
    return decide(
        error,
        attempt=attempt.job.claim.epoch,
        errors_before=attempt.job.attempts,
        max_attempts=limits.max_attempts,
        retry=limits.retry,
        draw=limits.draw,
    )

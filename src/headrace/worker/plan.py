"""How one attempt is to be run, and what its end comes to: the same in the loop and in a child.

Nothing here runs a handler, and nothing knows a storage.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec

from headrace.codec import Encode, ResultTooLarge, encode_result
from headrace.context import Context, Reporter
from headrace.description import describe, traceback_of
from headrace.errors import ResultMismatch
from headrace.fail_jobs import ARGUMENTS, StoredFailure
from headrace.job import ClaimedJob, FailReason
from headrace.outcome import Completed, Failed, Outcome, decide
from headrace.retry import Retry, RetryFunction, RetryRules
from headrace.settings import TaskSettings
from headrace.signature import Signature
from headrace.stored_options import read_worker_options

Draw = Callable[[], float]
"""Source of random numbers from 0 to 1."""


class Encoded(bytes):
    """A result that its handler's process has encoded already."""


class Plan(msgspec.Struct, frozen=True, gc=False):
    """A claimed job with what it may take: its own options over its task's. Can be pickled."""

    job: ClaimedJob
    max_attempts: int
    timeout_ms: int
    retry: Retry | RetryFunction
    retry_rules: RetryRules
    result_ttl_ms: int
    keep_ms: int
    headers: dict[str, str]
    failed: StoredFailure | None = None

    def context(self, reporter: Reporter, encode: Encode, state: Any = None) -> Context[Any]:
        """Return what the handler sees of its attempt."""
        return Context(
            self.job,
            max_attempts=self.max_attempts,
            timeout=self.timeout_ms / 1000 or None,
            headers=self.headers,
            state=state,
            reporter=reporter,
            encode=encode,
        )

    def arguments(self, signature: Signature[Any]) -> tuple[tuple[object, ...], dict[str, object]]:
        """Return positional and keyword arguments for the handler.

        That of a fail job is told which job failed, and has its arguments as plain data: None where
        they can't be read.

        Raises:
            msgspec.MsgspecError: they can't be read, or don't fit the handler.
        """
        if self.failed is None:
            return signature.decode(self.job.payload)
        if not signature.takes(ARGUMENTS):
            raise msgspec.ValidationError(
                f"the task takes {signature.of_call}, and is called for the failed job "
                f"{self.failed.id!r}: it has to take that id, the arguments and a Failure"
            )
        return (self.failed.id, signature.read_plain(self.job.payload), self.failed.told()), {}

    def completed(self, result: Any, encode: Encode) -> Outcome:
        """Return what a handler's result comes to, as ``encode`` of its signature writes it."""
        if type(result) is Encoded:
            # Plain bytes, since no encoder takes what is derived from them.
            return Completed(bytes(result), self.result_ttl_ms, self.keep_ms)
        try:
            return Completed(encode_result(encode, result), self.result_ttl_ms, self.keep_ms)
        except ResultTooLarge as error:
            return Failed(FailReason.RESULT_TOO_LARGE, describe(error, self.job.claim.epoch))
        except msgspec.ValidationError as error:
            mismatch = ResultMismatch(
                f"the result is not of the type that the task declares: {error}",
                job_id=self.job.id,
                queue=self.job.queue,
            )
            return Failed(FailReason.PERMANENT, describe(mismatch, self.job.claim.epoch))
        except BaseException as error:  # NotSerializable, or whatever the result's own code raises
            # To run it again would not make the result any better.
            return Failed(FailReason.PERMANENT, describe(error, self.job.claim.epoch))

    def raised(self, error: BaseException, draw: Draw = random.random) -> Outcome:
        """Return what a handler's error comes to; ``draw`` spreads the waits of retries."""
        return decide(
            error,
            start=self.job.claim.epoch,
            errors_before=self.job.failures,
            max_attempts=self.max_attempts,
            retry=self.retry,
            rules=self.retry_rules,
            draw=draw,
        )

    def timed_out(self, error: BaseException | None, draw: Draw, *, is_stuck: bool) -> Outcome:
        """Return what an attempt over its limit comes to; ``error`` shows where it was."""
        text = f"the attempt took longer than its {self.timeout_ms / 1000:g} s"
        if is_stuck:
            text += ", could not be stopped and goes on"
        over = TimeoutError(text)
        if error is not None:
            over = over.with_traceback(traceback_of(error))
        return self.raised(over, draw)


def plan_of(job: ClaimedJob, settings: TaskSettings) -> Plan:
    """Return a job's plan.

    Raises:
        msgspec.MsgspecError: its options can't be read.
    """
    options = read_worker_options(job.options)
    ttl_ms, keep_ms = options.get("result_ttl_ms"), options.get("keep_ms")
    return Plan(
        job,
        options.get("max_attempts") or settings.max_attempts,
        options.get("timeout_ms") or settings.timeout_ms or 0,
        options.get("retry") or settings.retry,
        settings.retry_rules,
        settings.result_ttl_ms if ttl_ms is None else ttl_ms,
        settings.keep_ms if keep_ms is None else keep_ms,
        options.get("headers", {}),
        options.get("failed"),
    )


def undecodable(job: ClaimedJob, error: BaseException) -> Outcome:
    """Return what becomes of a job that can't be read, whatever is stored there."""
    return Failed(FailReason.UNDECODABLE, describe(error, job.claim.epoch), is_attempt=False)

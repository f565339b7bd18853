"""One attempt: a running handler, why it was asked to stop, whom it tells how it goes and ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Protocol

import msgspec

from headrace.job import ClaimedJob
from headrace.outcome import Cancelled, Outcome
from headrace.settings import TaskSettings
from headrace.worker.plan import Draw, Plan, plan_of
from headrace.worker.slots import Slot
from headrace.worker.strikes import KnownStrikes

COULD_NOT_STOP = "could_not_stop"
"""The reason of a cancelled job whose handler goes on."""


class StopReason(StrEnum):
    """Why an attempt is asked to stop."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    FENCED = "fenced"
    SHUTDOWN = "shutdown"


class Follower(Protocol):
    """Takes what handlers say of their progress; may be called in any thread."""

    def progress(self, job: ClaimedJob, fraction: float, text: str) -> None:
        """Note how far a job's attempt is."""

    def emit(self, job: ClaimedJob, chunk: bytes) -> None:
        """Pass on a piece of a job's output."""


class Attempt:
    """One running handler; what it reports to.

    Attributes:
        job: what was claimed.
        slot: what it holds.
        plan: what it may take, once that was read.
        strikes: by which it may not be run, None where there are none.
        reason: why it was asked to stop first, None if it was not.
        is_stuck: it goes on although it was stopped.
        in_child: a process runs it now, or it waits for one.
        has_thread: it is stuck in a thread.
    """

    __slots__ = (
        "_done",
        "_follower",
        "_is_ending_child",
        "_on_stuck",
        "_runner",
        "_unwind_s",
        "draw",
        "has_thread",
        "in_child",
        "is_stuck",
        "job",
        "plan",
        "reason",
        "slot",
        "started_at",
        "strikes",
    )

    def __init__(
        self,
        job: ClaimedJob,
        *,
        slot: Slot,
        done: Done,
        follower: Follower | None,
        on_stuck: Callable[[Attempt], None],
        draw: Draw,
        unwind_s: float,
        strikes: KnownStrikes | None = None,
    ) -> None:
        self.job: ClaimedJob = job
        self.slot: Slot = slot
        self.plan: Plan | None = None
        self.strikes: KnownStrikes | None = strikes
        self.reason: StopReason | None = None
        self.is_stuck: bool = False
        self.in_child: bool = False
        self.has_thread: bool = False
        self.started_at: float = time.monotonic()
        self._done: Done | None = done
        self._follower = follower
        self._is_ending_child = False
        self._on_stuck = on_stuck
        self.draw: Draw = draw
        self._unwind_s = unwind_s
        self._runner: asyncio.Task[Outcome | None] | None = None

    def start(self, runner: asyncio.Task[Outcome | None]) -> None:
        """Note the asyncio task that runs it."""
        self._runner = runner

    def release(self) -> None:
        """Let go of the task, which has ended.

        It holds the handler's context, and that holds this: a circle that only a collection would
        free, at a fourth of an attempt's cost.
        """
        self._runner = None

    def stop(self, reason: StopReason) -> None:
        """Cancel the handler; the first reason counts, but fencing overrides all."""
        was_stopped = self.reason is not None
        if not was_stopped or reason is StopReason.FENCED:
            self.reason = reason
        if self._runner is None or self._is_ending_child:
            return  # a second cancellation would cut the end of its process short
        self._is_ending_child = self.in_child
        self._runner.cancel()
        if not was_stopped:
            self._runner.get_loop().call_later(self._unwind_s, self._give_up)

    def enter_child(self) -> None:
        """Note that a process is to run it."""
        self.in_child = True

    def leave_child(self) -> None:
        """Note that none does any more."""
        self.in_child = self._is_ending_child = False

    def intercept(self, call: Callable[[Done, Attempt, Outcome | None], None]) -> None:
        """Have ``call`` told of the outcome first; it passes it on."""
        if self._done is not None:
            self._done = partial(call, self._done)

    def leave_out(self, seconds: float) -> None:
        """Don't count so much of the time that went by as its own."""
        self.started_at += seconds

    def end(self, outcome: Outcome | None) -> None:
        """Tell the outcome, the first time only."""
        done, self._done = self._done, None
        if done is not None:
            done(self, outcome)

    def stopped(self, error: BaseException | None) -> Outcome | None:
        """Return what it comes to, since it was stopped; ``error`` shows where it was."""
        plan = self.plan or last_resort(self.job)
        if self.reason is StopReason.CANCEL:
            return Cancelled(plan.keep_ms, COULD_NOT_STOP if self.is_stuck else "")
        if self.reason is StopReason.TIMEOUT:
            return plan.timed_out(error, self.draw, is_stuck=self.is_stuck)
        return None

    def _give_up(self) -> None:
        if self._done is not None:
            self.is_stuck = True
            self._on_stuck(self)
            self.end(self.stopped(None))

    @property
    def run_ms(self) -> int:
        """How long it has run."""
        return round((time.monotonic() - self.started_at) * 1000)

    def progress(self, fraction: float, text: str) -> None:
        """Pass on how far the handler is, unless it was given up."""
        if self._follower is not None and self._done is not None:
            self._follower.progress(self.job, fraction, text)

    def emit(self, chunk: bytes) -> None:
        """Pass on a piece of the handler's output, likewise."""
        if self._follower is not None and self._done is not None:
            self._follower.emit(self.job, chunk)

    def is_stopping(self) -> bool:
        """Whether it was asked to stop."""
        return self.reason is not None


Done = Callable[[Attempt, Outcome | None], None]
"""Takes an attempt's outcome; None: there is nothing to record, for it was fenced or shut down."""


def last_resort(job: ClaimedJob) -> Plan:
    """Return a plan for what was stopped before its own was read."""
    return plan_of(msgspec.structs.replace(job, options=b""), TaskSettings())

"""Runs one handler: an attempt goes in, an outcome comes out; the storage is never touched.

Here is one plain asyncio task an attempt, and one way to stop it whatever the cause: a timer and a
task group each would halve the rate (26,000 to 29,000 attempts/s against 58,000 to 63,000 without a
queue).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from types import FrameType
from typing import Any, Protocol

from headrace.context import Context, Reporter, enter, has_heard_stop
from headrace.description import is_a
from headrace.errors import UsageError
from headrace.events import Emit, HandlerStuck
from headrace.hooks import Hooks
from headrace.job import DEFAULT_LANE, ClaimedJob
from headrace.middleware import CallNext, Middleware, wrap
from headrace.outcome import Completed, Failed, Outcome
from headrace.settings import ExecutorKind
from headrace.task import Task, is_awaitable
from headrace.worker.attempt import Attempt, Done, Follower, StopReason, last_resort
from headrace.worker.hook_calls import HOOKS_S, HookCalls
from headrace.worker.other_release import OtherRelease
from headrace.worker.plan import Draw, Encoded, Plan, plan_of, undecodable
from headrace.worker.slots import Slot
from headrace.worker.strikes import KnownStrikes
from headrace.worker.threads import Threads

UNWIND_S = 5.0
"""How long a handler may take to end once it was stopped; then it is given up."""


class ProcessSlots(Protocol):
    """Runs the attempts of tasks with ``executor="process"``, each in a process."""

    async def run(self, plan: Plan, reporter: Reporter, *, is_offered: bool) -> Outcome | None:
        """Run one attempt; cancelling this ends it before this returns.

        None: its function has seen that it should stop, and returned.
        ``is_offered``: it was claimed for a slot of these, and not for another lane's.
        """


class ChildError(Exception):
    """What a handler raised in its process, as middleware sees it: the text of the error alone.

    Attributes:
        outcome: what the attempt comes to if this is raised on.
    """

    def __init__(self, outcome: Outcome) -> None:
        error = getattr(outcome, "error", None)
        super().__init__(f"{error.type}: {error.message}" if error else str(outcome))
        self.outcome: Outcome = outcome


class Executor:
    """Runs attempts of a set of tasks.

    Args:
        tasks: by name.
        middleware: around every handler, the first outermost.
        hooks: called for every task, beside its own; default none.
        state: what the lifespan yielded.
        emit: told of handlers that can't be stopped.
        threads: for plain functions; without them none can run.
        processes: for tasks with ``executor="process"``; without them their jobs are put back.
        lanes: those that the worker serves; jobs of tasks that need another one are put back.
            Default: it serves all.
        unwind_s: how long a handler may take to end once it was stopped.
        hooks_s: how long the hooks of an attempt may take.
        draw: source of random numbers from 0 to 1, for the waits of retries.
        who: what errors call the worker, as in ``release 2.1``.
    """

    def __init__(
        self,
        tasks: Mapping[str, Task[..., Any]],
        *,
        middleware: Sequence[Middleware],
        hooks: Hooks | None = None,
        state: Any,
        emit: Emit = lambda _event: None,
        threads: Threads | None = None,
        processes: ProcessSlots | None = None,
        lanes: Collection[str] | None = None,
        unwind_s: float = UNWIND_S,
        hooks_s: float = HOOKS_S,
        draw: Draw = random.random,
        who: str = "this worker",
    ) -> None:
        self._tasks = tasks
        self._middleware = tuple(middleware)
        self._state = state
        self._emit = emit
        self._threads = threads
        self._processes = processes
        self._lanes = lanes
        self._unwind_s = unwind_s
        self._stuck: set[Attempt] = set()
        self._hooks = HookCalls(
            hooks or Hooks(), state=state, threads=threads, emit=emit, limit_s=hooks_s
        )
        self._draw = draw
        self._other_release = OtherRelease(tasks.keys(), who)

    @property
    def stuck(self) -> int:
        """How many handlers go on although their attempts were given up."""
        return len(self._stuck)

    def start(
        self,
        job: ClaimedJob,
        done: Done,
        *,
        slot: Slot | None = None,
        follower: Follower | None = None,
        strikes: KnownStrikes | None = None,
    ) -> Attempt:
        """Start an attempt; ``done`` is called once with its outcome, however it ends.

        ``slot``: what it holds, default one that nobody counts. ``strikes``: what it may be met by.
        """
        attempt = Attempt(
            job,
            slot=slot or Slot(DEFAULT_LANE),
            done=done,
            follower=follower,
            on_stuck=self._coroutine_stuck,
            draw=self._draw,
            unwind_s=self._unwind_s,
            strikes=strikes,
        )
        # The task is kept by the attempt, which the caller keeps: it can't be collected half-way.
        runner = asyncio.get_running_loop().create_task(self._run(attempt))
        runner.add_done_callback(partial(self._ended, attempt))
        attempt.start(runner)
        return attempt

    async def _run(self, attempt: Attempt) -> Outcome | None:
        job = attempt.job
        task = self._tasks.get(job.task)
        if task is None:
            return self._other_release.unknown_task(job)
        if not_run := self._not_run(attempt, task):
            return not_run
        if task.settings.hooks is not None or self._hooks.are_for_all:
            self._hooks.intercept(attempt, task)
        try:
            attempt.plan = plan = plan_of(job, task.settings)
            handler = self._handler(attempt, plan, task)
        except BaseException as error:  # whatever is stored there, and the code of its types raises
            return self._refused(job, task, undecodable(job, error))
        try:
            result = await _call(attempt, plan.timeout_ms, handler)
        except BaseException as error:  # SystemExit of a handler must not end the worker
            return self._refused(job, task, _outcome_of(error, attempt, plan))
        # What returns over its limit is too late, and a plain function obeys a cancel by returning.
        obeys = attempt.reason is StopReason.CANCEL and not task.settings.is_coroutine
        if obeys or attempt.reason is StopReason.TIMEOUT:
            return attempt.stopped(None)
        return plan.completed(result, task.signature.encode_result)

    def _not_run(self, attempt: Attempt, task: Task[..., Any]) -> Outcome | None:
        """Return what an attempt comes to whose handler is not to be run here, or not now."""
        job, settings, strikes = attempt.job, task.settings, attempt.strikes
        # It may have come before its task had what only others have.
        if settings.executor is ExecutorKind.PROCESS and self._processes is None:
            return self._other_release.no_process_slots(job)
        if settings.needs and self._lanes is not None and settings.needs not in self._lanes:
            return self._other_release.no_lane(job, settings.needs)
        return None if strikes is None else strikes.outcome(job, task)

    def _refused(
        self, job: ClaimedJob, task: Task[..., Any], outcome: Outcome | None
    ) -> Outcome | None:
        """Return what an attempt comes to that did not complete; arguments may yet fit others."""
        if not isinstance(outcome, Failed):
            return outcome
        return self._other_release.misfit(job, outcome, task.settings.skew_grace_ms)

    def _handler(self, attempt: Attempt, plan: Plan, task: Task[..., Any]) -> CallNext:
        """Return what runs the handler, with middleware around it."""
        context = plan.context(attempt, task.signature.encode_plain, self._state)
        enter(context)
        handler: CallNext
        if task.settings.executor is ExecutorKind.PROCESS:
            handler = partial(self._in_child, attempt, plan, task)
        else:
            args, kwargs = plan.arguments(task.signature)
            if task.signature.injected_name:
                args = (context, *args)
            if task.settings.executor is ExecutorKind.COROUTINE:
                handler = partial(task.function, *args, **kwargs)
            else:
                function = partial(task.function, *args, **kwargs)
                handler = partial(self._in_thread, attempt, context, function)
        return wrap(self._middleware, context, handler) if self._middleware else handler

    async def _in_thread(
        self, attempt: Attempt, context: Context[Any], function: Callable[[], Any]
    ) -> Any:
        if self._threads is None:
            raise UsageError(f"the task {attempt.job.task!r} needs a thread, and there are none")
        result = await self._threads.run(
            function,
            on_leak=partial(self._thread_stuck, attempt),
            on_end=partial(self._stuck.discard, attempt),
        )
        if is_awaitable(result):  # of a plain decorator around a coroutine function
            result = await _begun(result, attempt)
        if has_heard_stop(context):
            raise asyncio.CancelledError  # it has heeded the stop, and not completed
        return result

    async def _in_child(self, attempt: Attempt, plan: Plan, task: Task[..., Any]) -> Any:
        assert self._processes is not None, "else it was put back"  # noqa: S101
        # Middleware may call this again, when its slot was offered to the next job already.
        is_offered = attempt.slot.pass_on()
        attempt.enter_child()
        try:
            outcome = await self._processes.run(plan, attempt, is_offered=is_offered)
        finally:
            attempt.leave_child()
        if outcome is None:
            raise asyncio.CancelledError  # as a function in a thread that heeds a stop
        if not isinstance(outcome, Completed):
            raise ChildError(outcome)
        encoded = Encoded(outcome.result)
        return task.signature.decode_result(encoded) if self._middleware else encoded

    def _ended(self, attempt: Attempt, runner: asyncio.Task[Outcome | None]) -> None:
        """Take the outcome, also of an attempt that was stopped before its first step."""
        try:
            outcome = runner.result()
        except BaseException as error:
            outcome = _outcome_of(error, attempt, attempt.plan or last_resort(attempt.job))
        attempt.release()
        attempt.end(outcome)
        if not attempt.has_thread:
            self._stuck.discard(attempt)

    def _coroutine_stuck(self, attempt: Attempt) -> None:
        self._report_stuck(attempt, "coroutine")

    def _thread_stuck(self, attempt: Attempt) -> None:
        attempt.is_stuck = attempt.has_thread = True
        self._report_stuck(attempt, "thread")

    def _report_stuck(self, attempt: Attempt, kind: str) -> None:
        self._stuck.add(attempt)
        job = attempt.job
        self._emit(
            HandlerStuck(
                job_id=job.id,
                task=job.task,
                queue=job.queue,
                start=job.claim.epoch,
                kind=kind,
                cause=attempt.reason or "",
                stuck=len(self._stuck),
            )
        )


def job_of(frame: FrameType) -> ClaimedJob | None:
    """Return the job whose attempt runs in a frame; None if the frame is another function's."""
    if frame.f_code is not Executor._run.__code__:  # noqa: SLF001 (it is this module's)
        return None
    attempt: Attempt = frame.f_locals["attempt"]
    return attempt.job


def _begun(result: Awaitable[Any], attempt: Attempt) -> Awaitable[Any]:
    """Return what is to be awaited, unless the attempt was stopped before it has begun."""
    if not attempt.is_stopping():
        return result
    if asyncio.iscoroutine(result):
        result.close()
    raise asyncio.CancelledError


async def _call(attempt: Attempt, timeout_ms: int, handler: CallNext) -> Any:
    if not timeout_ms:
        return await handler()
    loop = asyncio.get_running_loop()
    timer = loop.call_later(timeout_ms / 1000, attempt.stop, StopReason.TIMEOUT)
    try:
        return await handler()
    finally:
        timer.cancel()


def _outcome_of(error: BaseException, attempt: Attempt, plan: Plan) -> Outcome | None:
    """Return what an error that left the handler comes to, given why it may have been stopped."""
    reason = attempt.reason
    if reason is None or (reason is StopReason.TIMEOUT and not is_a(error, asyncio.CancelledError)):
        return error.outcome if is_a(error, ChildError) else plan.raised(error, attempt.draw)
    return attempt.stopped(error)

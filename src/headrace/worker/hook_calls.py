"""Calls hooks between the decision what an attempt came to and the record of it, for a short time.

Each call is an asyncio task of its own, and one more waits for them: a hook may do what it likes,
and neither keeps the outcome from being recorded nor another hook from being called.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from headrace.context import enter
from headrace.description import told
from headrace.events import Emit, HookFailed
from headrace.hooks import AttemptOutcome, Hook, Hooks
from headrace.outcome import Completed, Failed, Outcome, Retried
from headrace.plain import shown
from headrace.task import Task, is_awaitable
from headrace.worker.attempt import Attempt, Done, StopReason, last_resort
from headrace.worker.threads import Threads

HOOKS_S = 5.0
"""How long the hooks of an attempt may take; then they are cancelled."""

STOPPING_S = 1.0
"""How long while the worker stops, so that the outcome is not too late to be recorded."""

_NAMES = {Completed: "on_success", Failed: "on_failure", Retried: "on_retry"}


class Decided(NamedTuple):
    """An attempt, its task, and what it came to."""

    attempt: Attempt
    task: Task[..., Any]
    outcome: Completed | Failed | Retried


class HookCalls:
    """Calls the hooks of an app and of its tasks.

    Args:
        hooks: the app's own, for every task.
        state: what the lifespan yielded.
        threads: for plain functions; without them these run in the event loop.
        emit: told of hooks that fail or take too long.
        limit_s: how long those of an attempt may take.
    """

    def __init__(
        self,
        hooks: Hooks,
        *,
        state: Any,
        threads: Threads | None,
        emit: Emit,
        limit_s: float,
    ) -> None:
        self.are_for_all: bool = hooks != Hooks()
        self._hooks = hooks
        self._state = state
        self._threads = threads
        self._emit = emit
        self._limit_s = limit_s
        self._running: set[asyncio.Task[Any]] = set()

    def intercept(self, attempt: Attempt, task: Task[..., Any]) -> None:
        """Have the hooks called before anybody hears of the attempt's outcome."""
        attempt.intercept(partial(self._on_outcome, task))

    def _on_outcome(
        self, task: Task[..., Any], done: Done, attempt: Attempt, outcome: Outcome | None
    ) -> None:
        if isinstance(outcome, Completed | Failed | Retried):
            hooks = self._hooks_for(task, outcome)
            if hooks and attempt.reason is not StopReason.FENCED:
                self._begin(hooks, Decided(attempt, task, outcome), done)
                return
        done(attempt, outcome)

    def _hooks_for(
        self, task: Task[..., Any], outcome: Completed | Failed | Retried
    ) -> tuple[Hook, ...]:
        name, own = _NAMES[type(outcome)], task.settings.hooks
        return (own.of(name) if own else ()) + self._hooks.of(name)

    def _begin(self, hooks: tuple[Hook, ...], decided: Decided, done: Done) -> None:
        calls = {self._start(self._call(hook, decided)): hook for hook in hooks}
        is_stopping = decided.attempt.reason is StopReason.SHUTDOWN
        limit_s = min(self._limit_s, STOPPING_S) if is_stopping else self._limit_s
        waiting = self._start(asyncio.wait(calls, timeout=limit_s))
        waiting.add_done_callback(partial(self._finish, calls, decided, done, time.monotonic()))
        decided.attempt.start(waiting)  # so that what stops the attempt from now on ends the wait

    def _start(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        running = asyncio.get_running_loop().create_task(coroutine)
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        return running

    async def _call(self, hook: Hook, decided: Decided) -> None:
        try:
            seen = self._seen(decided)
            enter(seen.context)
            call = partial(hook, seen)
            if self._threads is None or inspect.iscoroutinefunction(hook):
                result = call()
            else:
                result = await self._threads.run(call, on_leak=_nothing, on_end=_nothing)
            if is_awaitable(result):
                await result
        except BaseException as error:  # SystemExit of a hook must not end the worker
            if not _is_cut():
                self._report(decided, hook, told(error))

    def _seen(self, decided: Decided) -> AttemptOutcome:
        attempt, task, outcome = decided
        plan = attempt.plan or last_resort(attempt.job)
        context = plan.context(attempt, task.signature.encode_plain, self._state)
        seen = partial(AttemptOutcome, context=context, run_s=attempt.run_ms / 1000)
        match outcome:
            case Completed(data):
                return seen(outcome="completed", result=task.signature.decode_result(data))
            case Failed(reason, error):
                return seen(outcome="failed", error=error, reason=reason.value)
            case Retried(delay_ms, error):
                return seen(outcome="retrying", error=error, retry_in_s=delay_ms / 1000)

    def _finish(
        self,
        calls: Mapping[asyncio.Task[None], Hook],
        decided: Decided,
        done: Done,
        began_at: float,
        waiting: asyncio.Task[Any],
    ) -> None:
        """Let the outcome go its way, and leave behind what is still running."""
        attempt = decided.attempt
        cause = f"the attempt was stopped ({attempt.reason})"
        if not waiting.cancelled():
            cause = f"it took longer than {time.monotonic() - began_at:.1f} s"
        for call, hook in calls.items():
            if not call.done():
                call.cancel()
                self._report(decided, hook, f"TimeoutError: {cause} and was cancelled")
        attempt.release()
        attempt.leave_out(time.monotonic() - began_at)
        done(attempt, decided.outcome)

    def _report(self, decided: Decided, hook: Hook, error: str) -> None:
        job = decided.attempt.job
        self._emit(
            HookFailed(
                job_id=job.id,
                task=job.task,
                queue=job.queue,
                start=job.claim.epoch,
                hook=_NAMES[type(decided.outcome)],
                function=_name_of(hook),
                error=error,
            )
        )


def _name_of(hook: Hook) -> str:
    with suppress(BaseException):  # it may be an object with code of its own
        return f"{hook.__module__}.{hook.__qualname__}"
    return shown(hook)


def _is_cut() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _nothing() -> None:
    """Do nothing."""

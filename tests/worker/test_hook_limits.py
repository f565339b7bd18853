"""Hooks that take too long or don't end, beside attempts that are stopped; no storage is needed."""

from __future__ import annotations

import asyncio
import random
import threading
from typing import Any

import pytest

from headrace import AttemptOutcome
from headrace.events import HookFailed
from headrace.job import DEFAULT_LANE
from headrace.outcome import Completed, Outcome, Retried
from headrace.testing import EventLog
from headrace.worker.attempt import Attempt, StopReason
from headrace.worker.execute import Executor
from headrace.worker.hook_calls import HookCalls
from headrace.worker.slots import Slot
from headrace.worker.threads import Threads
from tests.support.nowhere import unreachable_app
from tests.support.until import patience, until
from tests.worker.slots import Run, claimed


class Stage:
    """An app, and an executor whose hooks have so long."""

    def __init__(self, *, hooks_s: float = 0.01) -> None:
        self.app = unreachable_app()
        self.log = EventLog()
        self.threads = Threads(4)
        self.begun: list[AttemptOutcome] = []
        self.hooks_s = hooks_s

    def start(self, task: Any) -> Run:
        executor = Executor(
            self.app.tasks,
            middleware=(),
            hooks=self.app.hooks,
            state=None,
            emit=self.log,
            threads=self.threads,
            unwind_s=0.01,
            hooks_s=self.hooks_s,
        )
        return Run(executor, claimed(task))

    def work(self) -> Any:
        @self.app.task
        async def work() -> str:
            return "done"

        return work

    async def hang(self, attempt: AttemptOutcome) -> None:
        self.begun.append(attempt)
        await asyncio.Event().wait()


async def test_a_hook_over_the_limit_is_cancelled_and_the_outcome_goes_its_way() -> None:
    stage = Stage()
    stage.app.on_success(stage.hang)
    assert isinstance(await stage.start(stage.work()).outcome(), Completed)
    [failed] = stage.log.of(HookFailed)
    assert failed.function == f"{__name__}.Stage.hang"
    assert failed.error.startswith("TimeoutError: it took longer than 0.0 s")


async def test_a_hook_that_ignores_its_cancellation_is_left_behind() -> None:
    stage, may_end, ended = Stage(), asyncio.Event(), asyncio.Event()

    @stage.app.on_success
    async def stubborn(attempt: AttemptOutcome) -> None:
        while not may_end.is_set():
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                continue
        ended.set()
        raise ValueError("which nobody hears")

    run = stage.start(stage.work())
    assert isinstance(await run.outcome(), Completed)
    may_end.set()
    await ended.wait()
    await asyncio.sleep(0)
    assert len(stage.log.of(HookFailed)) == len(run.outcomes) == 1


async def test_a_plain_hook_that_blocks_its_thread_keeps_no_outcome() -> None:
    stage, may_end = Stage(), threading.Event()

    @stage.app.on_success
    def block(attempt: AttemptOutcome) -> None:
        may_end.wait()

    try:
        assert isinstance(await stage.start(stage.work()).outcome(), Completed)
    finally:
        may_end.set()
    assert [event.function.rpartition(".")[2] for event in stage.log.of(HookFailed)] == ["block"]


async def test_a_hook_that_hangs_or_raises_keeps_no_other_from_being_called() -> None:
    stage = Stage(hooks_s=patience(0.5))  # within which the others have to end, one in a thread
    called: list[str] = []
    stage.app.on_success(stage.hang)

    @stage.app.on_success
    async def cancels_itself(attempt: AttemptOutcome) -> None:
        raise asyncio.CancelledError("its own")

    @stage.app.on_success
    def last(attempt: AttemptOutcome) -> None:
        called.append(attempt.result)

    await stage.start(stage.work()).outcome()
    assert called == ["done"]
    failed = [event.error.partition(":")[0] for event in stage.log.of(HookFailed)]
    assert failed == ["asyncio.exceptions.CancelledError", "TimeoutError"]


@pytest.mark.parametrize("reason", list(StopReason))
async def test_what_stops_the_attempt_ends_the_wait_for_its_hooks(reason: StopReason) -> None:
    stage = Stage(hooks_s=60)
    stage.app.on_success(stage.hang)
    run = stage.start(stage.work())
    await until(lambda: stage.begun)
    run.attempt.stop(reason)
    # Who hears of it looks at the reason: of a fenced attempt nothing is recorded.
    assert isinstance(await run.outcome(), Completed)
    assert run.attempt.reason is reason
    [failed] = stage.log.of(HookFailed)
    assert failed.error == f"TimeoutError: the attempt was stopped ({reason}) and was cancelled"


async def test_a_stop_before_a_hook_has_begun_lets_the_outcome_go_its_way() -> None:
    stage = Stage()
    stage.app.on_success(stage.hang)
    task, outcome = stage.work(), Completed(b"1", 0, 0)
    done: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()
    attempt = Attempt(
        claimed(task),
        slot=Slot(DEFAULT_LANE),
        done=lambda _attempt, outcome: done.set_result(outcome),
        follower=None,
        on_stuck=lambda _attempt: None,
        draw=random.random,
        unwind_s=60,
    )
    HookCalls(stage.app.hooks, state=None, threads=None, emit=stage.log, limit_s=60).intercept(
        attempt, task
    )
    attempt.end(outcome)
    attempt.stop(StopReason.SHUTDOWN)
    assert await done is outcome
    assert stage.begun == []


async def test_a_fenced_attempt_calls_no_hook() -> None:
    stage = Stage()
    stage.app.on_success(stage.hang)

    @stage.app.task
    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done"
        return "never"

    run = stage.start(stubborn)
    await asyncio.sleep(0)
    run.attempt.stop(StopReason.FENCED)
    await run.outcome()
    assert stage.begun == []


async def test_hooks_are_called_for_a_handler_that_was_given_up() -> None:
    stage, may_end = Stage(hooks_s=10), asyncio.Event()
    told: list[AttemptOutcome] = []
    stage.app.on_retry(told.append)

    @stage.app.task(timeout=0.001)
    async def stubborn() -> None:
        while not may_end.is_set():
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                continue

    run = stage.start(stubborn)
    assert isinstance(await run.outcome(), Retried)
    [seen] = told
    assert seen.error is not None
    assert seen.error.message.endswith("could not be stopped and goes on")
    may_end.set()
    await asyncio.sleep(0)
    assert len(run.outcomes) == len(told) == 1

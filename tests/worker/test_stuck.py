"""Coroutines that swallow their cancellation: they are given up, and their late end is ignored."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from headrace import App, CallNext, Context
from headrace.events import HandlerStuck
from headrace.outcome import Cancelled, Completed, Retried
from headrace.testing import EventLog
from headrace.worker.attempt import StopReason
from headrace.worker.execute import Executor
from tests.support.nowhere import unreachable_app
from tests.support.until import until
from tests.worker.slots import Run, claimed


class Stage:
    """An app whose handlers are given up after ten milliseconds."""

    def __init__(self) -> None:
        self.app = unreachable_app()
        self.log = EventLog()
        self.may_end = asyncio.Event()
        self.executor = Executor(
            self.app.tasks,
            middleware=self.app.middlewares,
            state=None,
            emit=self.log,
            unwind_s=0.01,
        )

    def stubborn(self, **options: Any) -> Any:
        """Return a task that goes on until the test lets it end."""

        @self.app.task(**options)
        async def stubborn() -> str:
            while not self.may_end.is_set():
                try:
                    await self.may_end.wait()
                except asyncio.CancelledError:
                    continue
            return "late"

        return stubborn

    def start(self, task: Any) -> Run:
        return Run(self.executor, claimed(task))

    async def let_end(self, run: Run) -> None:
        self.may_end.set()
        await until(lambda: self.executor.stuck == 0)
        assert len(run.outcomes) == 1, "its late end changes nothing"


@pytest.fixture
async def stage() -> Stage:
    return Stage()


async def test_a_cancelled_coroutine_that_goes_on_is_given_up(stage: Stage) -> None:
    """BC-80, G10: documented and observable."""
    run = stage.start(stage.stubborn(keep=3))
    await asyncio.sleep(0)
    run.attempt.stop(StopReason.CANCEL)
    assert await run.outcome() == Cancelled(3_000, "could_not_stop")
    (event,) = stage.log.of(HandlerStuck)
    assert (event.kind, event.cause, event.stuck) == ("coroutine", "cancel", 1)
    assert (event.job_id, event.start) == ("x", 1)
    assert stage.executor.stuck == 1
    await stage.let_end(run)


async def test_one_that_goes_on_after_its_limit_has_timed_out(stage: Stage) -> None:
    run = stage.start(stage.stubborn(timeout=0.01))
    outcome = await run.outcome()
    assert isinstance(outcome, Retried)
    assert outcome.error.type == "TimeoutError"
    assert outcome.error.message.endswith("could not be stopped and goes on")
    await stage.let_end(run)


@pytest.mark.parametrize("reason", [StopReason.FENCED, StopReason.SHUTDOWN])
async def test_one_that_goes_on_when_fenced_or_shut_down_has_no_outcome(
    stage: Stage, reason: StopReason
) -> None:
    run = stage.start(stage.stubborn())
    await asyncio.sleep(0)
    run.attempt.stop(reason)
    assert await run.outcome() is None
    assert stage.log.of(HandlerStuck)[0].cause == reason
    await stage.let_end(run)


async def test_one_that_ends_in_time_is_not_stuck(stage: Stage) -> None:
    @stage.app.task
    async def tidy() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            for _ in range(3):
                await asyncio.sleep(0)
        return "done"

    run = stage.start(tidy)
    await asyncio.sleep(0)
    run.attempt.stop(StopReason.SHUTDOWN)
    assert isinstance(await run.outcome(), Completed)
    done = asyncio.Event()
    asyncio.get_running_loop().call_later(0.05, done.set)
    await done.wait()
    assert stage.log.events == []
    assert len(run.outcomes) == 1


async def test_every_stuck_one_is_counted_until_it_ends(stage: Stage) -> None:
    task = stage.stubborn()
    runs = [stage.start(task) for _ in range(5)]
    await asyncio.sleep(0)
    for run in runs:
        run.attempt.stop(StopReason.CANCEL)
    for run in runs:
        await run.outcome()
    assert [event.stuck for event in stage.log.of(HandlerStuck)] == [1, 2, 3, 4, 5]
    await stage.let_end(runs[0])


async def test_one_that_fails_long_after_it_was_given_up_is_forgotten(stage: Stage) -> None:
    @stage.app.task
    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await stage.may_end.wait()
            raise ValueError("too late") from None

    run = stage.start(stubborn)
    await asyncio.sleep(0)
    run.attempt.stop(StopReason.CANCEL)
    assert isinstance(await run.outcome(), Cancelled)
    await stage.let_end(run)
    gc.collect()  # an exception that nobody has retrieved would be reported now


async def test_a_middleware_that_goes_on_is_given_up_too(stage: Stage) -> None:
    @stage.app.middleware
    async def stubborn(_context: Context[Any], call_next: CallNext) -> Any:
        try:
            return await call_next()
        except asyncio.CancelledError:
            await stage.may_end.wait()

    @stage.app.task
    async def hang() -> None:
        await asyncio.Event().wait()

    executor = Executor(
        stage.app.tasks, middleware=stage.app.middlewares, state=None, emit=stage.log, unwind_s=0.01
    )
    run = Run(executor, claimed(hang))
    await asyncio.sleep(0)
    run.attempt.stop(StopReason.CANCEL)
    assert isinstance(await run.outcome(), Cancelled)
    assert executor.stuck == 1
    stage.may_end.set()
    await until(lambda: executor.stuck == 0)


async def test_garbage_collection_takes_neither_stuck_nor_running_attempts() -> None:
    # BC-82: asyncio itself keeps only weak references to tasks.
    stage = Stage()
    ended: list[int] = []

    @stage.app.task
    async def stubborn(number: int) -> int:
        waiting = asyncio.get_running_loop().create_future()  # nothing else refers to this
        asyncio.get_running_loop().call_later(0.1, waiting.set_result, None)
        while not waiting.done():
            try:
                await asyncio.shield(waiting)
            except asyncio.CancelledError:
                continue
        ended.append(number)
        return number

    app: App[Any] = stage.app
    runs = [
        Run(stage.executor, claimed(app.tasks[stubborn.name], {"number": number}))
        for number in range(20)
    ]
    await asyncio.sleep(0)
    for run in runs[::2]:
        run.attempt.stop(StopReason.CANCEL)

    def collected() -> bool:
        gc.collect()
        return len(ended) == 20

    await until(collected, within=20)
    kinds = [type(await run.outcome()) for run in runs]
    assert kinds == [Cancelled, Completed] * 10
    await until(lambda: stage.executor.stuck == 0)

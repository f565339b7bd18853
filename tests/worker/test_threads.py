"""Plain functions as handlers: they run in threads, which nothing can stop."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec
import pytest

from headrace import App, CallNext, Context, FailPermanently, FailReason, Task, current_job
from headrace.events import HandlerStuck
from headrace.outcome import Cancelled, Completed, Failed, Outcome, Retried
from headrace.testing import EventLog
from headrace.worker import threads
from headrace.worker.attempt import StopReason
from headrace.worker.execute import Executor
from headrace.worker.threads import Threads
from tests.support.nowhere import unreachable_app
from tests.support.until import patience, until
from tests.worker.slots import Run, claimed

WITHIN_S = 10.0


@pytest.fixture
def app() -> App[Any]:
    """Return an app that is never connected."""
    return unreachable_app()


class Pool:
    """An executor with a number of threads, and what it tells."""

    def __init__(self, app: App[Any], limit: int) -> None:
        self.log = EventLog()
        self.threads = Threads(limit)
        self.executor = Executor(
            app.tasks,
            middleware=app.middlewares,
            state="state",
            emit=self.log,
            threads=self.threads,
        )

    def start(self, task: Task[..., Any], **arguments: object) -> Run:
        return Run(self.executor, claimed(task, arguments))

    async def run(self, task: Task[..., Any], **arguments: object) -> Outcome | None:
        return await self.start(task, **arguments).outcome()


@contextmanager
def pool_of(app: App[Any], limit: int = 4) -> Iterator[Pool]:
    pool = Pool(app, limit)
    try:
        yield pool
    finally:
        pool.threads.close()


@asynccontextmanager
async def letting_go() -> AsyncIterator[threading.Event]:
    """Yield what stuck functions wait for; at the end they are let go, or no test would end."""
    go = threading.Event()
    try:
        yield go
    finally:
        go.set()
        await until(lambda: not any("headrace-handler" in t.name for t in threading.enumerate()))


async def test_a_function_s_result_error_and_context_are_those_of_any_handler(
    app: App[Any],
) -> None:
    @app.task
    def look(context: Context[str], word: str) -> list[object]:
        assert context is current_job()
        assert threading.current_thread() is not threading.main_thread()
        return [context.state, word, context.job_id, context.cancelled()]

    @app.task
    def fail() -> None:
        raise FailPermanently("never")

    with pool_of(app) as pool:
        outcome = await pool.run(look, word="w")
        assert isinstance(outcome, Completed)
        assert msgspec.json.decode(outcome.result) == ["state", "w", "x", False]
        outcome = await pool.run(fail)
        assert isinstance(outcome, Failed)
        assert outcome.reason is FailReason.PERMANENT


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (SystemExit(3), "SystemExit"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (StopIteration(), "RuntimeError"),  # as from a coroutine
        (GeneratorExit(), "GeneratorExit"),
        (asyncio.CancelledError(), "asyncio.exceptions.CancelledError"),
        (TimeoutError("its own"), "TimeoutError"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_whatever_a_function_raises_counts_as_its_error(
    app: App[Any], error: BaseException, kind: str
) -> None:
    @app.task
    def fail() -> None:
        raise error

    with pool_of(app) as pool:
        outcome = await pool.run(fail)
        assert isinstance(outcome, Retried)
        assert outcome.error.type == kind
        assert pool.log.events == []


async def test_functions_run_at_once_up_to_the_limit_and_the_rest_wait(app: App[Any]) -> None:
    begun: list[int] = []
    async with letting_go() as go:
        together = threading.Barrier(3)

        @app.task
        def meet(number: int) -> int:
            begun.append(number)
            together.wait(WITHIN_S)
            assert go.wait(WITHIN_S)
            return number

        with pool_of(app, limit=3) as pool:
            runs = [pool.start(meet, number=number) for number in range(6)]
            await until(lambda: together.n_waiting == 0 and len(begun) == 3)
            for _ in range(50):
                await asyncio.sleep(0)
            assert len(begun) == 3
            go.set()
            assert [await run.result() for run in runs] == [b"%d" % n for n in range(6)]


async def test_context_variables_of_a_middleware_reach_the_function(app: App[Any]) -> None:
    user: ContextVar[str] = ContextVar("user")

    @app.middleware
    async def name(context: Context[Any], call_next: CallNext) -> Any:
        user.set(f"user of {context.job_id}")
        return await call_next()

    @app.task
    def look() -> str:
        return user.get()

    with pool_of(app) as pool:
        assert await pool.start(look).result() == b'"user of x"'


# Functions that go on


async def test_a_function_over_its_limit_is_given_up_and_said_to_go_on(app: App[Any]) -> None:
    """G12, BC-80: observable, since it can't be stopped."""
    async with letting_go() as go:

        @app.task(timeout=1)  # one that had not begun by then would never begin
        def hang() -> None:
            assert go.wait(WITHIN_S)

        with pool_of(app) as pool:
            outcome = await pool.run(hang)
            assert isinstance(outcome, Retried)
            assert outcome.error.type == "TimeoutError"
            text = "the attempt took longer than its 1 s, could not be stopped and goes on"
            assert outcome.error.message == text
            (event,) = pool.log.of(HandlerStuck)
            assert (event.kind, event.cause, event.stuck) == ("thread", "timeout", 1)
            assert pool.executor.stuck == 1
            go.set()
            await until(lambda: pool.executor.stuck == 0)
            assert len(pool.log.events) == 1


async def test_a_cancelled_function_that_goes_on_is_cancelled_and_says_so(app: App[Any]) -> None:
    async with letting_go() as go:
        begun = threading.Event()

        @app.task(keep=3)
        def hang() -> str:
            begun.set()
            assert go.wait(WITHIN_S)
            return "too late"

        with pool_of(app) as pool:
            run = pool.start(hang)
            await until(begun.is_set)
            run.attempt.stop(StopReason.CANCEL)
            assert await run.outcome() == Cancelled(3_000, "could_not_stop")
            (event,) = pool.log.of(HandlerStuck)
            assert (event.kind, event.cause) == ("thread", "cancel")
            go.set()
            await until(lambda: pool.executor.stuck == 0)
            assert len(run.outcomes) == 1, "its late result is nobody's"


@pytest.mark.parametrize("reason", [StopReason.FENCED, StopReason.SHUTDOWN])
async def test_a_fenced_or_shut_down_function_has_no_outcome(
    app: App[Any], reason: StopReason
) -> None:
    async with letting_go() as go:
        begun = threading.Event()

        @app.task
        def hang() -> None:
            begun.set()
            assert go.wait(WITHIN_S)

        with pool_of(app) as pool:
            run = pool.start(hang)
            await until(begun.is_set)
            run.attempt.stop(reason)
            assert await run.outcome() is None
            assert pool.executor.stuck == 1


async def test_a_function_that_has_not_begun_never_does_after_it_was_stopped(
    app: App[Any],
) -> None:
    begun: list[int] = []
    async with letting_go() as go:

        @app.task
        def work(number: int) -> int:
            begun.append(number)
            assert go.wait(WITHIN_S)
            return number

        with pool_of(app, limit=1) as pool:
            first = pool.start(work, number=1)
            await until(lambda: begun)
            waiting = pool.start(work, number=2)
            await asyncio.sleep(0)
            waiting.attempt.stop(StopReason.CANCEL)
            assert await waiting.outcome() == Cancelled(3_600_000)
            last = pool.start(work, number=3)
            go.set()
            assert [await first.result(), await last.result()] == [b"1", b"3"]
            assert begun == [1, 3]
            assert pool.log.events == []


async def test_stuck_threads_count_against_the_limit_until_they_end(app: App[Any]) -> None:
    begun: list[int] = []
    async with letting_go() as go:

        @app.task
        def hang(number: int) -> None:
            begun.append(number)
            assert go.wait(WITHIN_S)

        @app.task
        def work() -> None: ...

        with pool_of(app, limit=2) as pool:
            for expected in (1, 2):
                run = pool.start(hang, number=expected)
                await until(lambda: expected in begun)  # noqa: B023 (waited for here)
                run.attempt.stop(StopReason.CANCEL)
                await run.outcome()
                assert pool.executor.stuck == expected
            assert [event.stuck for event in pool.log.of(HandlerStuck)] == [1, 2]
            behind = pool.start(work)
            await asyncio.sleep(0)
            assert not behind.outcomes
            go.set()
            assert await behind.result() == b"null"
            await until(lambda: pool.executor.stuck == 0)


async def test_a_function_that_looks_whether_it_should_stop_returns_early(
    app: App[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "ASK_S", patience(5))  # one that is late would be given up
    begun, seen = threading.Event(), threading.Event()

    @app.task
    def polite(context: Context[Any]) -> str:
        begun.set()
        while not context.cancelled():
            pass
        seen.set()
        return "early"

    with pool_of(app) as pool:
        run = pool.start(polite)
        await until(begun.is_set)
        run.attempt.stop(StopReason.CANCEL)
        await until(seen.is_set)
        assert await run.outcome() == Cancelled(3_600_000)
        assert pool.executor.stuck == 0


async def test_what_a_function_says_after_it_was_given_up_is_not_passed_on(app: App[Any]) -> None:
    class Heard:
        said: list[object]

        def progress(self, _job: object, fraction: float, _text: str) -> None:
            self.said.append(fraction)

        def emit(self, _job: object, chunk: bytes) -> None:
            self.said.append(chunk)

    heard = Heard()
    heard.said = []
    async with letting_go() as go:
        ended = threading.Event()

        @app.task
        def hang(context: Context[Any]) -> None:
            context.progress(0.5)
            context.emit(1)
            assert go.wait(WITHIN_S)
            context.progress(1.0)
            context.emit(2)
            ended.set()

        with pool_of(app) as pool:
            run = Run(pool.executor, claimed(hang), follower=heard)
            await until(lambda: len(heard.said) == 2)
            run.attempt.stop(StopReason.CANCEL)
            await run.outcome()
            go.set()
            await until(ended.is_set)
            assert heard.said == [0.5, b"1"]


async def test_garbage_collection_takes_no_running_function(app: App[Any]) -> None:
    # BC-82: nothing but the attempt itself refers to what runs.
    @app.task
    def work(number: int) -> int:
        gc.collect()
        return number

    with pool_of(app) as pool:
        runs = [pool.start(work, number=number) for number in range(4)]
        for _ in range(3):
            gc.collect()
            await asyncio.sleep(0)
        assert [await run.result() for run in runs] == [b"0", b"1", b"2", b"3"]


async def test_a_worker_without_threads_says_what_it_lacks(app: App[Any]) -> None:
    @app.task
    def work() -> None: ...

    executor = Executor(app.tasks, middleware=(), state=None)
    outcome = await Run(executor, claimed(work)).outcome()
    assert isinstance(outcome, Retried)
    assert "needs a thread" in outcome.error.message

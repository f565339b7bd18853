"""One attempt in, one outcome out: no server is needed to run a handler."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import msgspec
import pytest

from headrace import (
    App,
    CallNext,
    Context,
    FailPermanently,
    FailReason,
    Retry,
    RetryLater,
    Task,
    current_job,
)
from headrace.job import Claim, ClaimedJob
from headrace.options import WorkerOptions
from headrace.outcome import Cancelled, Completed, Failed, Outcome, PutBack, Retried
from headrace.worker.attempt import Attempt, StopReason
from headrace.worker.execute import Executor
from tests.support.nowhere import unreachable_app
from tests.support.until import patience


class Place(msgspec.Struct):
    """An argument."""

    x: int
    y: int


@pytest.fixture
def app() -> App[Any]:
    """Return an app that is never connected."""
    return unreachable_app()


def claimed(
    task: str | Task[..., Any],
    arguments: dict[str, object] | None = None,
    *,
    payload: bytes | None = None,
    failures: int = 0,
    options: bytes = b"",
) -> ClaimedJob:
    return ClaimedJob(
        id="x",
        queue="default",
        task=task if isinstance(task, str) else task.name,
        payload=msgspec.json.encode(arguments or {}) if payload is None else payload,
        claim=Claim(failures + 1, "incarnation/nonce"),
        failures=failures,
        stalls=0,
        created_ms=1_700_000_000_000,
        waited_ms=0,
        options=options,
    )


class Run:
    """An attempt that was started, and what it came to."""

    def __init__(self, app: App[Any], job: ClaimedJob, *, state: object = None) -> None:
        self._ended: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()
        executor = Executor(app.tasks, middleware=app.middlewares, state=state)
        self.attempt = executor.start(job, self._done)

    def _done(self, _attempt: Attempt, outcome: Outcome | None) -> None:
        self._ended.set_result(outcome)

    async def outcome(self) -> Outcome | None:
        async with asyncio.timeout(patience(10)):
            return await self._ended


async def run(app: App[Any], job: ClaimedJob, *, state: object = None) -> Outcome | None:
    return await Run(app, job, state=state).outcome()


async def failed(app: App[Any], job: ClaimedJob) -> Failed:
    outcome = await run(app, job)
    assert isinstance(outcome, Failed)
    return outcome


async def test_a_result_is_encoded_with_the_task_s_retention(app: App[Any]) -> None:
    @app.task(result_ttl=5, keep=9)
    async def add(a: int, b: int = 2) -> int:
        return a + b

    assert await run(app, claimed(add, {"a": 1})) == Completed(b"3", 5_000, 9_000)
    own = msgspec.json.encode(WorkerOptions(result_ttl_ms=1, keep_ms=2))
    assert await run(app, claimed(add, {"a": 1}, options=own)) == Completed(b"3", 1, 2)


async def test_a_job_s_own_limits_win_over_its_task_s(app: App[Any]) -> None:
    @app.task(max_attempts=1)
    async def fail() -> None:
        raise ValueError("no")

    own = msgspec.json.encode(WorkerOptions(max_attempts=2, retry=Retry(min=2, max=2)))
    outcome = await run(app, claimed(fail, options=own))
    assert isinstance(outcome, Retried)
    assert outcome.delay_ms == 2_000


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit(),
        asyncio.CancelledError("its own"),
        BaseExceptionGroup("several", [KeyboardInterrupt(), ValueError("x")]),
        MemoryError(),
        StopAsyncIteration(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_a_handler_raises_counts_as_its_error(
    app: App[Any], error: BaseException
) -> None:
    # RELIABILITY §3 41: sys.exit() in a library that a handler calls ends one attempt, no worker.
    @app.task
    async def fail() -> None:
        raise error

    outcome = await run(app, claimed(fail))
    assert isinstance(outcome, Retried)
    assert type(error).__name__ in outcome.error.type
    assert outcome.error.start == 1
    last = await failed(app, claimed(fail, failures=2))
    assert last.reason is FailReason.EXHAUSTED


async def test_endless_recursion_is_an_error_like_any_other(app: App[Any]) -> None:
    @app.task
    async def fall() -> None:
        def deeper(n: int) -> int:
            return deeper(n + 1) + 1

        deeper(0)

    outcome = await run(app, claimed(fall))
    assert isinstance(outcome, Retried)
    assert outcome.error.type == "RecursionError"


async def test_signals_choose_the_end_of_an_attempt(app: App[Any]) -> None:
    @app.task
    async def choose(later: bool) -> None:  # noqa: FBT001 (as users write it)
        raise RetryLater(7) if later else FailPermanently("never")

    outcome = await run(app, claimed(choose, {"later": True}))
    assert isinstance(outcome, Retried)
    assert outcome.delay_ms == 7_000
    assert (await failed(app, claimed(choose, {"later": False}))).reason is FailReason.PERMANENT


async def test_a_task_that_is_not_known_is_put_back_for_5_to_30_seconds(app: App[Any]) -> None:
    # RELIABILITY §5 45: no name is ever imported.
    delays = set()
    for name in ("os.system", "app.__globals__", "nothing"):
        outcome = await run(app, claimed(name, {"command": "ls"}))
        assert isinstance(outcome, PutBack)
        assert 5_000 <= outcome.delay_ms <= 30_000
        assert repr(name) in outcome.error.message
        delays.add(outcome.delay_ms)
    assert len(delays) > 1, "jobs of an old release must not all come back at once"


UNDECODABLE = {
    "nesting": b"[" * 100_000,
    "nan": b'{"text":NaN}',
    "infinity": b'{"text":Infinity}',
    "huge float": b'{"text":"a","number":1e999}',
    "digits": b'{"text":"a","number":' + b"9" * 5_000 + b"}",
    "surrogate": b'{"text":"\\ud800"}',
    "unknown field": b'{"text":"a","__class__":"os"}',
    "msgpack": b"\xdd\xff\xff\xff\xff",
    "pickle": b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94.",
    "yaml": b"!!python/object/apply:os.system [ls]",
    "gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
    "empty": b"",
    "null": b"null",
    "list": b"[1,2]",
    "type": b'{"text":5}',
    "missing": b"{}",
    "not utf-8": b'{"text":"\xff"}',
    "trailing": b'{"text":"a"} {}',
}


@pytest.mark.parametrize("payload", UNDECODABLE.values(), ids=UNDECODABLE)
async def test_a_payload_that_can_not_be_read_never_reaches_the_handler(
    app: App[Any], payload: bytes
) -> None:
    # RELIABILITY §5 36 to 44; BC-95: nothing is unpickled.
    @app.task(skew_grace=0)
    async def take(text: str, number: int = 0) -> None:
        raise AssertionError("it ran")

    outcome = await failed(app, claimed(take, payload=payload))
    assert outcome.reason is FailReason.UNDECODABLE
    assert not outcome.is_attempt, "the handler did not fail"


@pytest.mark.parametrize(
    ("payload", "what"),
    [
        (b"{}", "Object missing required field `number`"),
        (b'{"number":1,"to":2}', "Object contains unknown field `to`"),
        (b'{"number":1,"place":{"x":1}}', "Object missing required field `y` - at `$.place`"),
    ],
)
async def test_arguments_of_another_shape_are_put_back_for_as_long_as_the_task_says(
    app: App[Any], payload: bytes, what: str
) -> None:
    async def take(number: int, place: Place | None = None) -> None:
        raise AssertionError("it ran")

    put_back = await run(app, claimed(app.task(take), payload=payload))
    assert isinstance(put_back, PutBack)
    assert (put_back.limit_ms, put_back.reason) == (300_000, FailReason.UNDECODABLE)
    assert 5_000 <= put_back.delay_ms <= 30_000
    assert put_back.error.message == f"this worker refused the arguments: {what}"
    assert put_back.error.type == "msgspec.ValidationError"
    short = await run(app, claimed(app.task(name="b", skew_grace=1)(take), payload=payload))
    assert isinstance(short, PutBack)
    assert (short.limit_ms, short.delay_ms) == (1_000, 1_000)


async def test_options_that_can_not_be_read_are_undecodable_too(app: App[Any]) -> None:
    @app.task
    async def take() -> None: ...

    for options in (b"{", b"[]", b'{"max_attempts":"x"}', b'{"retry":{"min":-1}}'):
        outcome = await failed(app, claimed(take, options=options))
        assert outcome.reason is FailReason.UNDECODABLE


async def test_twice_the_same_key_is_the_last_one(app: App[Any]) -> None:
    # RELIABILITY §5 40: stated, and the same on every storage.
    @app.task
    async def take(text: str) -> str:
        return text

    outcome = await run(app, claimed(take, payload=b'{"text":"a","text":"b"}'))
    assert isinstance(outcome, Completed)
    assert outcome.result == b'"b"'


async def test_large_numbers_reach_the_handler_unchanged(app: App[Any]) -> None:
    # BC-60, RELIABILITY §5 47.
    @app.task
    async def take(number: int) -> int:
        return number

    for number in (2**53 + 1, 130775545883395173, 2**63 - 1, 2**64):
        outcome = await run(app, claimed(take, {"number": number}))
        assert isinstance(outcome, Completed)
        assert outcome.result == str(number).encode()


async def test_a_result_over_the_limit_fails_for_good(app: App[Any]) -> None:
    @app.task
    async def write(size: int) -> str:
        return "x" * size

    limit = 1024 * 1024
    assert isinstance(await run(app, claimed(write, {"size": limit - 2})), Completed)
    outcome = await failed(app, claimed(write, {"size": limit - 1}))
    assert outcome.reason is FailReason.RESULT_TOO_LARGE
    assert "1,048,577 bytes" in outcome.error.message


@pytest.mark.parametrize("result", [object(), b"raw", float("nan"), {"a": [print]}, {1.5: 2}])
async def test_a_result_that_json_can_not_hold_fails_for_good(
    app: App[Any], result: object
) -> None:
    @app.task
    async def give() -> Any:
        return result

    outcome = await failed(app, claimed(give))
    assert outcome.reason is FailReason.PERMANENT
    assert outcome.error.type == "headrace.NotSerializable"
    assert outcome.error.message.startswith("result")


async def test_the_context_is_the_first_parameter_and_current_job(app: App[Any]) -> None:
    @app.task
    async def look(context: Context[str], word: str) -> list[object]:
        assert context is current_job()
        return [context.state, word, context.job_id, context.claim.nonce, context.task]

    job = claimed(look, {"word": "w"})
    outcome = await run(app, job, state="state")
    assert isinstance(outcome, Completed)
    seen = ["state", "w", "x", "incarnation/nonce", look.name]
    assert msgspec.json.decode(outcome.result) == seen


async def test_attempts_side_by_side_see_their_own_context(app: App[Any]) -> None:
    barrier = asyncio.Barrier(5)

    @app.task
    async def look(number: int) -> bool:
        before = current_job().failures
        await barrier.wait()
        return before == current_job().failures == number

    runs = [Run(app, claimed(look, {"number": n}, failures=n)) for n in range(5)]
    for one in runs:
        outcome = await one.outcome()
        assert isinstance(outcome, Completed)
        assert outcome.result == b"true"


# Middleware


async def test_the_first_middleware_is_outermost_and_results_can_be_changed(app: App[Any]) -> None:
    order: list[str] = []

    def layer(name: str) -> None:
        @app.middleware
        async def middleware(context: Context[Any], call_next: CallNext) -> Any:
            order.append(f"{name} in {context.job_id}")
            result = await call_next()
            order.append(f"{name} out")
            return f"{name}({result})"

    layer("a")
    layer("b")

    @app.task
    async def work() -> str:
        order.append("handler")
        return "r"

    outcome = await run(app, claimed(work))
    assert order == ["a in x", "b in x", "handler", "b out", "a out"]
    assert isinstance(outcome, Completed)
    assert outcome.result == b'"a(b(r))"'


async def test_an_exception_that_leaves_a_middleware_is_the_handler_s(app: App[Any]) -> None:
    @app.middleware
    async def translate(_context: Context[Any], call_next: CallNext) -> Any:
        try:
            return await call_next()
        except KeyError as error:
            raise FailPermanently("not there") from error

    @app.task
    async def work() -> None:
        raise KeyError("x")

    outcome = await failed(app, claimed(work))
    assert outcome.reason is FailReason.PERMANENT
    assert outcome.error.message == "not there"
    assert "KeyError: 'x'" in outcome.error.traceback


async def test_a_middleware_may_swallow_an_error_or_skip_the_handler(app: App[Any]) -> None:
    @app.middleware
    async def calm(context: Context[Any], call_next: CallNext) -> Any:
        if context.headers.get("skip"):
            return "skipped"
        try:
            return await call_next()
        except ValueError:
            return "swallowed"

    @app.task
    async def work() -> str:
        raise ValueError("no")

    outcome = await run(app, claimed(work))
    assert isinstance(outcome, Completed)
    assert outcome.result == b'"swallowed"'
    skip = msgspec.json.encode(WorkerOptions(headers={"skip": "1"}))
    outcome = await run(app, claimed(work, options=skip))
    assert isinstance(outcome, Completed)
    assert outcome.result == b'"skipped"'


# Stopping


def hanging_task(app: App[Any], **options: Any) -> Task[[], None]:
    @app.task(**options)
    async def hang() -> None:
        await asyncio.Event().wait()

    return hang


async def test_a_timeout_cancels_the_handler_and_is_its_error(app: App[Any]) -> None:
    outcome = await run(app, claimed(hanging_task(app, timeout=0.01)))
    assert isinstance(outcome, Retried)
    assert outcome.error.type == "TimeoutError"
    assert "longer than its 0.01 s" in outcome.error.message
    assert "asyncio.Event().wait()" in outcome.error.traceback, "it shows where it was stuck"


async def test_a_timeout_includes_the_middleware(app: App[Any]) -> None:
    @app.middleware
    async def slow(_context: Context[Any], call_next: CallNext) -> Any:
        await asyncio.Event().wait()
        return await call_next()

    @app.task(timeout=0.01)
    async def work() -> None: ...

    assert isinstance(await run(app, claimed(work)), Retried)


async def test_a_handler_that_answers_its_timeout_with_an_error_of_its_own(app: App[Any]) -> None:
    @app.task(timeout=0.01)
    async def tidy() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise FailPermanently("gave up") from None

    outcome = await failed(app, claimed(tidy))
    assert outcome.reason is FailReason.PERMANENT


async def test_a_handler_that_swallows_its_timeout_has_timed_out_whatever_it_returns(
    app: App[Any],
) -> None:
    """G12: the limit is real."""

    @app.task(timeout=0.01)
    async def finish() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "what there was"
        return "all"

    outcome = await run(app, claimed(finish))
    assert isinstance(outcome, Retried)
    assert outcome.error.type == "TimeoutError"


async def test_an_attempt_that_overstays_does_not_end_before_it_really_ends(app: App[Any]) -> None:
    # BC-20: the retry can't begin beside it.
    may_end = asyncio.Event()

    @app.task(timeout=0.01)
    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await may_end.wait()
            raise

    one = Run(app, claimed(stubborn))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await asyncio.shield(one.outcome())
    may_end.set()
    assert isinstance(await one.outcome(), Retried)


async def test_a_cancelled_attempt_ends_cancelled_whatever_it_raises(app: App[Any]) -> None:
    @app.task(keep=3)
    async def fail() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("while it was stopping")

    for task in (hanging_task(app, keep=3), fail):
        one = Run(app, claimed(task))
        await asyncio.sleep(0)
        one.attempt.stop(StopReason.CANCEL)
        assert await one.outcome() == Cancelled(3_000)


async def test_an_attempt_can_be_stopped_before_its_first_step(app: App[Any]) -> None:
    task = hanging_task(app)
    one = Run(app, claimed(task))
    one.attempt.stop(StopReason.CANCEL)
    assert isinstance(await one.outcome(), Cancelled)


@pytest.mark.parametrize("reason", [StopReason.FENCED, StopReason.SHUTDOWN])
async def test_a_fenced_or_shut_down_attempt_has_no_outcome(
    app: App[Any], reason: StopReason
) -> None:
    one = Run(app, claimed(hanging_task(app)))
    await asyncio.sleep(0)
    one.attempt.stop(reason)
    assert await one.outcome() is None


async def test_fencing_overrides_an_earlier_reason(app: App[Any]) -> None:
    one = Run(app, claimed(hanging_task(app)))
    await asyncio.sleep(0)
    one.attempt.stop(StopReason.CANCEL)
    one.attempt.stop(StopReason.FENCED)
    assert await one.outcome() is None


async def test_garbage_collection_takes_no_running_attempt(app: App[Any]) -> None:
    # BC-82: asyncio itself keeps only weak references to tasks.
    go_on = asyncio.Event()

    @app.task
    async def work() -> int:
        gc.collect()
        await go_on.wait()
        return 5

    runs = [Run(app, claimed(work)) for _ in range(2)]
    for _ in range(3):
        gc.collect()
        await asyncio.sleep(0)
    go_on.set()
    for one in runs:
        assert isinstance(await one.outcome(), Completed)


async def test_an_attempt_that_has_ended_leaves_nothing_to_collect(app: App[Any]) -> None:
    @app.task
    async def work(context: Context[None]) -> int:
        return context.start

    await run(app, claimed(work))
    gc.collect()
    gc.disable()
    try:
        for _ in range(50):
            await run(app, claimed(work))
        assert gc.collect() == 0
    finally:
        gc.enable()

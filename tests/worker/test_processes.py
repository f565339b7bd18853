"""What an attempt in a process slot comes to: results, errors, and what a handler sees of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio
import uvloop

from headrace import App, CallNext, Context, FailReason, Retry, UsageError, Worker
from headrace.job import ClaimedJob
from headrace.options import WorkerOptions
from headrace.outcome import Completed, Failed, PutBack, Retried, Snoozed
from headrace.worker.execute import ChildError, Executor
from tests.apps import process_app as handlers
from tests.support.nowhere import unreachable_app
from tests.support.until import until
from tests.worker.slots import Crew, Run, claimed, crew_of

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def crew() -> AsyncIterator[Crew]:
    """Return two slots that all tests share: whatever a handler does here, they go on."""
    async with crew_of(handlers.app, slots=2, state="of the worker") as crew:
        yield crew
        await crew.full()
        assert crew.log.events == [], "no child has died of any of this"


async def completed(crew: Crew, job: ClaimedJob) -> Completed:
    outcome = await crew.run(job)
    assert isinstance(outcome, Completed), outcome
    return outcome


async def retried(crew: Crew, job: ClaimedJob) -> Retried:
    outcome = await crew.run(job)
    assert isinstance(outcome, Retried), outcome
    return outcome


async def failed(crew: Crew, job: ClaimedJob) -> Failed:
    outcome = await crew.run(job)
    assert isinstance(outcome, Failed), outcome
    return outcome


# Results


async def test_arguments_are_decoded_to_their_types_and_the_result_is_encoded(crew: Crew) -> None:
    assert (await completed(crew, claimed(handlers.add, {"a": 1}))).result == b"3"
    assert (await completed(crew, claimed(handlers.add, {"a": 1, "b": 5}))).result == b"6"
    outcome = await completed(crew, claimed(handlers.mirror, {"point": [1, 2]}))
    assert outcome == Completed(b"[2,1]", 5_000, 9_000)


async def test_a_job_s_own_options_reach_the_process(crew: Crew) -> None:
    own = msgspec.json.encode(WorkerOptions(result_ttl_ms=1, keep_ms=2, headers={"trace": "t"}))
    job = claimed(handlers.mirror, {"point": [1, 2]}, options=own)
    assert await completed(crew, job) == Completed(b"[2,1]", 1, 2)


async def test_the_context_in_the_process_is_that_of_the_job(crew: Crew) -> None:
    own = msgspec.json.encode(WorkerOptions(headers={"trace": "t"}))
    job = claimed(handlers.whoami, failures=1, job_id="k", options=own)
    seen = msgspec.json.decode((await completed(crew, job)).result)
    assert seen.pop("pid") != os.getpid()
    assert seen == {
        "parent": os.getpid(),
        "job": "k",
        "task": handlers.whoami.name,
        "start": 2,
        "failures": 1,
        "nonce": "incarnation/nonce",
        "timeout": 50,
        "same": True,
        "state": None,  # the lifespan's objects are of the worker's process
        "headers": {"trace": "t"},
        "cancelled": False,
    }


async def test_attempts_run_side_by_side_in_processes_that_are_used_again(crew: Crew) -> None:
    await crew.full()
    runs = [await crew.start(claimed(handlers.nap, {"ms": 5})) for _ in range(20)]
    assert len({await run.result() for run in runs}) == 2


async def test_payloads_and_results_of_a_mebibyte_pass(crew: Crew) -> None:
    limit = 1024 * 1024
    outcome = await completed(crew, claimed(handlers.write, {"size": limit - 2}))
    assert len(outcome.result) == limit
    text = "y" * (limit - 100)
    outcome_of_large = await failed(crew, claimed(handlers.fail, {"text": text}, failures=2))
    assert len(outcome_of_large.error.message) == 2_000


async def test_a_result_over_the_limit_fails_for_good(crew: Crew) -> None:
    for size in (1024 * 1024 - 1, 100 * 1024 * 1024):
        outcome = await failed(crew, claimed(handlers.write, {"size": size}))
        assert outcome.reason is FailReason.RESULT_TOO_LARGE


async def test_a_result_that_can_not_be_encoded_fails_for_good(crew: Crew) -> None:
    outcome = await failed(crew, claimed(handlers.odd))
    assert outcome.reason is FailReason.PERMANENT
    assert outcome.error.message.startswith("result.a[0] is a object")


@pytest.mark.parametrize("payload", [b"", b"[" * 100_000, b"\x80\x04.", b'{"a":"text"}', b"[]"])
async def test_arguments_that_can_not_be_read_are_undecodable(crew: Crew, payload: bytes) -> None:
    outcome = await failed(crew, claimed(handlers.add, payload=payload))
    assert outcome.reason is FailReason.UNDECODABLE
    assert not outcome.is_attempt


@pytest.mark.parametrize("payload", [b'{"a":1,"c":2}', b"{}"])
async def test_arguments_of_another_shape_are_put_back(crew: Crew, payload: bytes) -> None:
    outcome = await crew.run(claimed(handlers.add, payload=payload))
    assert isinstance(outcome, PutBack), outcome
    assert (outcome.limit_ms, outcome.reason) == (300_000, FailReason.UNDECODABLE)
    assert outcome.error.message.startswith("this worker refused the arguments: Object ")


# Errors


async def test_an_error_comes_with_the_traceback_of_its_process(crew: Crew) -> None:
    outcome = await retried(crew, claimed(handlers.fail, {"text": "no such thing"}))
    assert (outcome.error.type, outcome.error.message) == ("ValueError", "no such thing")
    assert "process_app.py" in outcome.error.traceback
    assert "raise ValueError(text)" in outcome.error.traceback
    assert outcome.error.start == 1
    last = await failed(crew, claimed(handlers.fail, {"text": "no"}, failures=2))
    assert last.reason is FailReason.EXHAUSTED


async def test_an_error_that_can_not_be_pickled_is_an_error_like_any_other(crew: Crew) -> None:
    # RELIABILITY §3 42: it needs arguments to be made, and holds a lock.
    outcome = await retried(crew, claimed(handlers.fail_awkwardly))
    assert outcome.error.type == "tests.apps.process_app.Awkward"
    assert outcome.error.message == "5 at here"


async def test_a_retry_function_is_given_the_error_itself(crew: Crew) -> None:
    assert (await retried(crew, claimed(handlers.fail_awkwardly, failures=1))).delay_ms == 21_000


@pytest.mark.parametrize("name", ["OSError", "Awkward"])
async def test_an_error_of_a_class_in_retry_on_is_retried(crew: Crew, name: str) -> None:
    assert (await retried(crew, claimed(handlers.fail_as, {"name": name}))).error.start == 1


@pytest.mark.parametrize("name", ["KeyError", "PermissionError"])
async def test_any_other_error_and_one_in_fail_on_are_permanent(crew: Crew, name: str) -> None:
    outcome = await failed(crew, claimed(handlers.fail_as, {"name": name}))
    assert (outcome.reason, outcome.error.type) == (FailReason.PERMANENT, name)
    assert outcome.is_attempt


async def test_a_job_s_own_retry_wins_over_its_task_s(crew: Crew) -> None:
    own = msgspec.json.encode(WorkerOptions(retry=Retry(min=2, max=2), max_attempts=9))
    job = claimed(handlers.fail_awkwardly, failures=7, options=own)
    assert (await retried(crew, job)).delay_ms == 2_000


async def test_signals_choose_the_end_of_an_attempt(crew: Crew) -> None:
    assert (await retried(crew, claimed(handlers.choose, {"later": True}))).delay_ms == 7_000
    outcome = await failed(crew, claimed(handlers.choose, {"later": False}))
    assert outcome.reason is FailReason.PERMANENT


async def test_a_handler_may_snooze_its_job(crew: Crew) -> None:
    assert await crew.run(claimed(handlers.poll)) == Snoozed(7_000, "not yet")


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ("exit", "SystemExit"),
        ("interrupt", "KeyboardInterrupt"),
        ("generator", "GeneratorExit"),
        ("stop", "StopIteration"),
        ("recursion", "RecursionError"),
    ],
)
async def test_whatever_a_handler_raises_counts_as_its_error(
    crew: Crew, how: str, kind: str
) -> None:
    # RELIABILITY §3 41: sys.exit() in a library that a handler calls ends no process.
    assert (await retried(crew, claimed(handlers.leave, {"how": how}))).error.type == kind


async def test_a_handler_that_forks_and_returns_twice_answers_once(crew: Crew) -> None:
    run = await crew.start(claimed(handlers.fork_and_return))
    assert await run.result() == b'"once"'
    for _ in range(4):
        await completed(crew, claimed(handlers.add, {"a": 1}))
    assert len(run.outcomes) == 1


# What a handler says while it runs


class Heard:
    """Keeps what a worker would pass on of progress and output."""

    def __init__(self) -> None:
        self.fractions: list[float] = []
        self.chunks: list[bytes] = []

    def progress(self, job: ClaimedJob, fraction: float, text: str) -> None:
        assert text == f"piece {len(self.fractions)}"
        assert job.id == "x"
        self.fractions.append(fraction)

    def emit(self, job: ClaimedJob, chunk: bytes) -> None:
        assert job.id == "x"
        self.chunks.append(chunk)


async def test_progress_and_output_arrive_in_order_and_before_the_outcome(crew: Crew) -> None:
    heard = Heard()
    run = await crew.start(claimed(handlers.chat, {"count": 2_000}), follower=heard)
    await run.result()
    assert heard.chunks == [str(number).encode() for number in range(2_000)]
    assert heard.fractions == [number / 2_000 for number in range(2_000)]


async def test_output_of_several_threads_is_whole_and_ends_with_the_attempt(crew: Crew) -> None:
    heard = Heard()
    job = claimed(handlers.chat_in_threads, {"count": 100})
    await (await crew.start(job, follower=heard)).result()
    pieces = [msgspec.json.decode(chunk) for chunk in heard.chunks]
    said = [piece for piece in pieces if piece != "late"]
    for number in range(4):
        steps = [step for who, step, _ in said if who == number]
        assert steps == list(range(100))
    # The thread that goes on in one of the processes speaks for no later job.
    for _ in range(6):
        other = Heard()
        await (await crew.start(claimed(handlers.nap, {"ms": 20}), follower=other)).result()
        assert other.chunks == []


# Middleware


class Stage:
    """An app with the same tasks and a middleware of the test's, in the shared slots."""

    def __init__(self, crew: Crew) -> None:
        self.app: App[Any] = unreachable_app()
        self.app.tasks.update(handlers.app.tasks)
        self._crew = crew

    async def run(self, job: ClaimedJob) -> Any:
        executor = Executor(
            self.app.tasks,
            middleware=self.app.middlewares,
            state="of the worker",
            processes=self._crew.processes,
        )
        await until(lambda: self._crew.offers, within=20, what="a slot is offered")
        return await self._crew.start_now(job, executor=executor).outcome()


@pytest.fixture
def stage(crew: Crew) -> Stage:
    return Stage(crew)


async def test_a_middleware_sees_the_result_with_its_type_and_may_change_it(stage: Stage) -> None:
    seen = []

    @stage.app.middleware
    async def double(context: Context[Any], call_next: CallNext) -> Any:
        assert context.state == "of the worker"
        seen.append(await call_next())
        return seen[0].x * 2

    outcome = await stage.run(claimed(handlers.mirror, {"point": [1, 2]}))
    assert seen == [handlers.Point(2, 1)]
    assert type(seen[0]) is handlers.Point
    assert outcome == Completed(b"4", 5_000, 9_000)


async def test_a_middleware_sees_the_text_of_the_error_which_keeps_its_outcome(
    stage: Stage,
) -> None:
    seen = []

    @stage.app.middleware
    async def look(_context: Context[Any], call_next: CallNext) -> Any:
        try:
            return await call_next()
        except ChildError as error:
            seen.append(str(error))
            raise

    outcome = await stage.run(claimed(handlers.fail_awkwardly, failures=1))
    assert seen == ["tests.apps.process_app.Awkward: 5 at here"]
    assert isinstance(outcome, Retried)
    assert outcome.delay_ms == 21_000
    assert "fail_awkwardly" in outcome.error.traceback


async def test_a_middleware_may_swallow_an_error_or_raise_another(stage: Stage) -> None:
    @stage.app.middleware
    async def calm(context: Context[Any], call_next: CallNext) -> Any:
        try:
            return await call_next()
        except ChildError as error:
            if context.failures:
                raise LookupError("another") from error
            return "swallowed"

    assert (await stage.run(claimed(handlers.fail, {"text": "no"}))).result == b'"swallowed"'
    outcome = await stage.run(claimed(handlers.fail, {"text": "no"}, failures=1))
    assert outcome.error.type == "LookupError"
    assert "ValueError: no" in outcome.error.traceback


async def test_a_middleware_may_skip_the_process_or_call_it_twice(crew: Crew, stage: Stage) -> None:
    @stage.app.middleware
    async def twice(context: Context[Any], call_next: CallNext) -> Any:
        return "skipped" if context.failures else [await call_next(), await call_next()]

    for _ in range(3):
        outcome = await stage.run(claimed(handlers.add, {"a": 1}))
        assert outcome.result == b"[3,3]"
        await crew.full()
    outcome = await stage.run(claimed(handlers.add, {"a": 1}, failures=1))
    assert outcome.result == b'"skipped"'


# What is refused at once


async def test_a_retry_function_that_can_not_be_passed_on_is_refused_by_the_worker() -> None:
    app = unreachable_app()
    app.task(executor="process", retry=lambda errors, _error: errors)(handlers.touch)
    with pytest.raises(UsageError, match=r"can't be passed to another process"):
        Worker(app)


@pytest.mark.parametrize("option", ["retry_on", "fail_on"])
async def test_a_class_that_can_not_be_passed_on_is_refused_by_the_worker(option: str) -> None:
    class Local(Exception):
        pass

    app = unreachable_app()
    options: dict[str, Any] = {option: Local}
    app.task(executor="process", **options)(handlers.touch)
    with pytest.raises(UsageError, match=rf"{option}=.*Local.* can't be passed to another process"):
        Worker(app)


# Where there are no slots


async def test_without_process_slots_a_job_is_released_free_of_charge() -> None:
    # It was enqueued before its task was given process slots, so that its lane is the common one.
    executor = Executor(handlers.app.tasks, middleware=(), state=None)
    outcome = await Run(executor, claimed(handlers.add, {"a": 1})).outcome()
    assert type(outcome).__name__ == "PutBack"
    assert "needs a worker with process slots" in str(outcome)


async def test_processes_are_spawned_and_run_under_uvloop_too() -> None:
    def run() -> bytes:
        async def main() -> bytes:
            async with crew_of(handlers.app) as crew:
                job = claimed(handlers.write, {"size": 500_000})
                return (await completed(crew, job)).result

        return uvloop.run(main())

    assert len(await asyncio.to_thread(run)) == 500_002

"""Hooks: who is called when it is decided what an attempt came to, with what, and for how long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headrace import (
    App,
    AttemptOutcome,
    Blueprint,
    CancelOutcome,
    Context,
    FailPermanently,
    JobState,
    Retry,
    Snooze,
    Worker,
    current_job,
)
from headrace.events import AttemptEnded, HookFailed
from headrace.testing import EventLog, running
from tests.support.jobs import ended, reached
from tests.support.until import until

NOW = Retry(min=0.001, max=0.001)


class Told:
    """Three hooks that keep what they are told, by the hook's name."""

    def __init__(self) -> None:
        self.outcomes: list[tuple[str, AttemptOutcome]] = []

    async def on_success(self, attempt: AttemptOutcome) -> None:
        self.outcomes.append(("on_success", attempt))

    def on_failure(self, attempt: AttemptOutcome) -> None:
        self.outcomes.append(("on_failure", attempt))

    async def on_retry(self, attempt: AttemptOutcome) -> str:
        self.outcomes.append(("on_retry", attempt))
        return "which does not count"

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.outcomes]

    @property
    def hooks(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("on_success", "on_failure", "on_retry")}

    def register(self, app: App[Any]) -> None:
        app.on_success(self.on_success)
        app.on_failure(self.on_failure)
        app.on_retry(self.on_retry)


@pytest.fixture
def told() -> Told:
    return Told()


async def fail_once_in_loop(context: Context, text: str) -> dict[str, int]:
    return fail_once(context, text)


def fail_once(context: Context, text: str) -> dict[str, int]:
    if context.failures == 0:
        raise ValueError(text)
    return {text: context.start}


@pytest.mark.parametrize("handler", [fail_once_in_loop, fail_once])
@pytest.mark.parametrize("of", ["app", "task"])
async def test_hooks_are_told_what_each_attempt_came_to(
    app: App[None], told: Told, handler: Any, of: str
) -> None:
    task: Any = app.task(retry=NOW, **(told.hooks if of == "task" else {}))(handler)
    if of == "app":
        told.register(app)
    async with running(Worker(app)):
        handle = await task.enqueue("no")
        assert await handle.result(timeout=10) == {"no": 2}
    [(first, failed), (second, completed)] = told.outcomes
    assert (first, failed.outcome, failed.retry_in_s) == ("on_retry", "retrying", 0.001)
    assert failed.error is not None
    assert (failed.error.type, failed.error.message, failed.error.start) == ("ValueError", "no", 1)
    assert "raise ValueError(text)" in failed.error.traceback
    assert (failed.result, failed.reason) == (None, "")
    assert (failed.context.job_id, failed.context.start) == (handle.id, 1)
    assert (second, completed.outcome, completed.result) == ("on_success", "completed", {"no": 2})
    assert (completed.error, completed.retry_in_s, completed.context.failures) == (None, 0, 1)


async def test_the_app_s_hooks_and_the_task_s_are_called_and_each_has_a_result_of_its_own(
    app: App[None],
) -> None:
    results: list[list[int]] = []

    @app.on_success
    def keep(attempt: AttemptOutcome) -> None:
        results.append(attempt.result)
        attempt.result.append(len(results))

    app.on_success(keep)

    @app.task(on_success=keep)
    async def count() -> list[int]:
        return [0]

    async with running(Worker(app)):
        assert await count.enqueue_and_wait() == [0]
    assert sorted(results) == [[0, 1], [0, 2], [0, 3]]


@pytest.mark.parametrize("text", ["exhausted", "permanent", "undecodable", "result_too_large"])
async def test_on_failure_is_called_for_each_dead_letter_that_a_worker_decides(
    app: App[None], told: Told, text: str
) -> None:
    @app.task(name="fail", max_attempts=1, on_failure=told.on_failure)
    async def fail(reason: str) -> str:
        if reason == "result_too_large":
            return "x" * 2_000_000
        raise FailPermanently(reason) if reason == "permanent" else ValueError(reason)

    arguments: dict[str, Any] = {"reason": 7 if text == "undecodable" else text}
    async with running(Worker(app)):
        handle = await app.enqueue("fail", queue="default", **arguments)
        assert (await ended(handle)).reason == text
    [(_, failed)] = told.outcomes
    assert (failed.outcome, failed.reason, failed.context.job_id) == ("failed", text, handle.id)
    assert failed.error is not None


async def test_no_hook_is_called_for_what_is_no_success_and_no_failure(
    app: App[None], told: Told
) -> None:
    told.register(app)

    @app.task
    async def snooze() -> None:
        raise Snooze(60)

    @app.task
    async def hang() -> None:
        await asyncio.Event().wait()

    log = EventLog()
    worker = Worker(app, emit=log, shutdown_timeout=0)
    async with running(worker):
        await snooze.enqueue()
        await app.enqueue("unknown", queue="default")
        handle = await hang.enqueue()
        await reached(handle, JobState.ACTIVE)
        assert await handle.cancel() is CancelOutcome.REQUESTED
        await ended(handle)
        await log.wait(AttemptEnded, 3)
        await hang.enqueue()  # which the worker puts back at its end
        await until(lambda: worker.active == 1)
    assert {event.outcome for event in log.of(AttemptEnded)} == {"snoozed", "put_back", "cancelled"}
    assert told.names == []


class Gate:
    """A hook that waits until it may go on, and how long it took."""

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.seen: list[AttemptOutcome] = []
        self.took_s = 0.0

    async def __call__(self, attempt: AttemptOutcome) -> None:
        began_at = time.monotonic()
        self.seen.append(attempt)
        self.has_begun.set()
        try:
            await self.may_end.wait()
        finally:
            self.took_s = time.monotonic() - began_at


async def test_the_outcome_is_recorded_once_the_hooks_are_done(app: App[None]) -> None:
    gate = Gate()

    @app.task(on_success=gate)
    async def work() -> str:
        return "done"

    worker = Worker(app)
    async with running(worker):
        handle = await work.enqueue()
        await gate.has_begun.wait()
        assert (await handle.status()).state is JobState.ACTIVE
        assert worker.active == 1
        gate.may_end.set()
        record = await ended(handle)
    assert record.state is JobState.COMPLETED
    # What the hooks took is no part of the attempt.
    assert record.run_s is not None
    assert record.run_s < gate.seen[0].run_s + gate.took_s


async def test_what_a_hook_was_told_may_be_overtaken_by_a_cancel(app: App[None]) -> None:
    gate = Gate()

    @app.task(on_retry=gate)
    async def fail() -> None:
        raise ValueError("no")

    async with running(Worker(app)):
        handle = await fail.enqueue()
        await gate.has_begun.wait()
        assert await handle.cancel() is CancelOutcome.REQUESTED
        assert (await ended(handle)).state is JobState.CANCELLED
    assert gate.seen[0].outcome == "retrying"


async def test_a_stop_cuts_hooks_short_and_the_outcome_is_recorded(app: App[None]) -> None:
    gate, log = Gate(), EventLog()

    @app.task(on_success=gate)
    async def work() -> str:
        return "done"

    async with running(Worker(app, emit=log, shutdown_timeout=0)):
        handle = await work.enqueue()
        await gate.has_begun.wait()
    assert (await handle.status()).state is JobState.COMPLETED
    [failed] = log.of(HookFailed)
    assert (failed.hook, failed.job_id, failed.start) == ("on_success", handle.id, 1)
    assert failed.error == "TimeoutError: the attempt was stopped (shutdown) and was cancelled"
    assert gate.took_s > 0, "it was cancelled"


async def test_a_hook_may_enqueue_and_knows_the_job(app: App[None]) -> None:
    letters: list[str] = []

    @app.task
    async def send(text: str) -> None:
        letters.append(text)

    @app.task(max_attempts=1)
    async def fail() -> None:
        raise ValueError("no")

    @app.on_failure
    async def report(attempt: AttemptOutcome) -> None:
        assert attempt.error is not None
        job = current_job()
        await send.options(id=f"failed:{job.job_id}").enqueue(attempt.error.message)

    async with running(Worker(app)):
        await ended(await fail.enqueue())
        await until(lambda: letters)
    assert letters == ["no"]


async def test_a_blueprint_may_say_hooks_and_rules_for_all_of_its_tasks(
    app: App[None], told: Told
) -> None:
    blueprint: Blueprint[None] = Blueprint(retry_on=OSError, **told.hooks)

    @blueprint.task(name="fail")
    async def fail() -> None:
        raise KeyError("no")

    app.include(blueprint)
    async with running(Worker(app)):
        assert (await ended(await fail.enqueue())).reason == "permanent"
    assert told.names == ["on_failure"]


async def test_the_lifespan_s_state_is_there_for_hooks(storage_url: str) -> None:
    @asynccontextmanager
    async def lifespan() -> AsyncIterator[dict[str, int]]:
        yield {"pool": 1}

    seen: list[dict[str, int]] = []
    async with App(storage_url, tenant="hooks", lifespan=lifespan) as app:

        @app.task(on_success=lambda attempt: seen.append(attempt.context.state))
        async def work() -> None: ...

        async with running(Worker(app)):
            await work.enqueue_and_wait()
    assert seen == [{"pool": 1}]

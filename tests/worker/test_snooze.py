"""A handler that comes too early snoozes its job: it runs again, and nothing has failed."""

from __future__ import annotations

from typing import Any

import pytest

from headrace import App, CallNext, Context, JobState, Snooze, Worker, current_job
from headrace.events import AttemptEnded, JobEventKind
from headrace.testing import EventLog, running
from tests.support.jobs import ended


def come_too_early(context: Context) -> int:
    """Snooze at the first two starts."""
    if context.start < 3:
        context.snooze(0.001, f"start {context.start}")
    return context.start


async def come_too_early_deep_down() -> int:
    """Do it where there is no context at hand."""
    start = current_job().start
    if start < 3:
        raise Snooze(0.001, f"start {start}")
    return start


@pytest.mark.parametrize("handler", [come_too_early, come_too_early_deep_down])
async def test_a_snoozed_job_runs_again_and_nothing_is_counted(
    app: App[None], handler: Any
) -> None:
    task: Any = app.task(max_attempts=1, max_stalls=1)(handler)
    log = EventLog()
    async with running(Worker(app, emit=log)):
        handle = await task.enqueue()
        assert await handle.result(timeout=10) == 3
    record = await handle.status()
    assert (record.starts, record.failures, record.stalls, record.errors) == (3, 0, 0, ())
    told = [(event.outcome, event.reason, event.retry_in_ms) for event in log.of(AttemptEnded)]
    assert told == [
        ("snoozed", "start 1", 1),
        ("snoozed", "start 2", 1),
        ("completed", "", 0),
    ]
    kept = [
        (event.start, event.detail, event.run_s is None)
        async for event in app.queue("default").events()
        if event.kind is JobEventKind.SNOOZED
    ]
    assert kept == [(1, "start 1", False), (2, "start 2", False)]


async def test_a_snooze_passes_through_middleware_which_may_snooze_too(app: App[None]) -> None:
    seen: list[str] = []

    @app.middleware
    async def gate(context: Context[Any], call_next: CallNext) -> Any:
        if context.start == 1:
            context.snooze(0, "the gate is closed")
        try:
            return await call_next()
        except Snooze as snooze:
            seen.append(str(snooze))
            raise

    task = app.task(come_too_early)
    async with running(Worker(app)):
        assert await task.enqueue_and_wait() == 3
    assert seen == ["start 2"]


async def test_the_one_that_snoozes_too_often_is_a_dead_letter_that_may_be_redriven(
    storage_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.outcome.SNOOZE_STARTS", 3)
    async with App(storage_url, tenant="snoozes") as app:

        @app.task
        async def wait_for_ever(context: Context) -> None:
            context.snooze(0)

        async with running(Worker(app)):
            handle = await wait_for_ever.enqueue()
            for starts in (3, 6):
                record = await ended(handle)
                assert (record.state, record.reason) == (JobState.FAILED, "exhausted")
                assert (record.starts, record.failures) == (starts, 0)
                assert record.errors[0].type == "headrace.SnoozeLimit"
                await app.queue("default").redrive(handle.id)
                await ended(handle)

"""An id is free again when its job is gone, and one id never runs twice at once."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from headrace import App, EnqueueOutcome, JobState, Task, Worker
from headrace.testing import running
from tests.apps.operate_app import nap
from tests.support.until import patience

IDS = [f"job-{number}" for number in range(5)]


@pytest.fixture
def task(app: App[None]) -> Task[[float], str]:
    @app.task(queue="mail", max_attempts=1)
    async def rest(seconds: float) -> str:
        return await nap(seconds)

    return rest


@pytest.mark.parametrize("delay", [None, 3600.0], ids=["queued", "scheduled"])
@pytest.mark.parametrize("by_id", [True, False])
async def test_an_id_is_free_when_its_waiting_job_was_purged(
    app: App[None], task: Task[[float], str], delay: float | None, *, by_id: bool
) -> None:
    # BC-26: no key of an id outlives the job that was deleted.
    state = JobState.SCHEDULED if delay else JobState.QUEUED
    for name in IDS:
        await task.options(id=name, delay=delay).enqueue(0)
    queue = app.queue("mail")
    gone = await (queue.purge(state, *IDS) if by_id else queue.purge(state, all_jobs=True))
    assert gone == len(IDS)
    again = [await task.options(id=name).enqueue(0) for name in IDS]
    assert {job.outcome for job in again} == {EnqueueOutcome.QUEUED}
    async with running(Worker(app, ["mail"])):
        for job in again:
            await job.result(timeout=patience(10))


@pytest.mark.parametrize("seconds", [-864_000, -3_600, -0.001, 0, 0.05])
async def test_the_same_id_runs_once_at_a_time_whenever_it_is_due(
    app: App[None], seconds: float
) -> None:
    # BC-29, BC-44: a time in the past, however far, is now, and never a second copy that may start.
    may_end = asyncio.Event()

    @app.task(queue="mail", max_attempts=1)
    async def hold() -> None:
        await may_end.wait()

    call = hold.options(id="one", run_at=datetime.now(UTC) + timedelta(seconds=seconds))
    async with running(Worker(app, ["mail"])), running(Worker(app, ["mail"])):
        jobs = [await call.enqueue() for _ in range(5)]
        may_end.set()
        await jobs[0].result(timeout=patience(10))
    assert [job.outcome for job in jobs[1:]] == [EnqueueOutcome.DUPLICATE] * 4
    rows = [row async for row in app.queue("mail").jobs("completed")]
    assert [row.id for row in rows] == ["one"]
    assert (await jobs[0].status()).starts == 1

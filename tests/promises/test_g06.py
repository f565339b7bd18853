"""G6: the same id, while the earlier job is not terminal or kept completed, changes nothing."""

from __future__ import annotations

import asyncio
from collections import Counter

from headrace import App, EnqueueOutcome, JobState, Worker
from headrace.testing import running
from tests.support.jobs import ended, reached
from tests.support.until import until


async def test_a_crowd_of_calls_around_the_start_runs_one(app: App[None]) -> None:
    # BC-30: no window opens when the job is claimed.
    most = active = 0

    @app.task(keep=0)
    async def work() -> None:
        nonlocal active, most
        active += 1
        most = max(most, active)
        await asyncio.sleep(0)
        active -= 1

    call = work.options(id="x")
    async with running(Worker(app)), running(Worker(app)):
        outcomes: Counter[EnqueueOutcome | None] = Counter()
        for _ in range(10):
            handles = await asyncio.gather(*(call.enqueue() for _ in range(100)))
            outcomes.update(handle.outcome for handle in handles)
        await until(lambda: _is_idle(app))
    assert most == 1
    assert outcomes.keys() <= {EnqueueOutcome.QUEUED, EnqueueOutcome.DUPLICATE}


async def _is_idle(app: App[None]) -> bool:
    stats = await app.queue("default").stats()
    return stats.queued == stats.active == 0


async def test_every_state_that_is_not_terminal_refuses_a_second(app: App[None]) -> None:
    go_on = asyncio.Event()

    @app.task(retry=lambda _errors, _error: 60.0)
    async def work(*, fails: bool) -> None:
        if fails:
            raise ValueError("no")
        await go_on.wait()

    await work.options(id="queued", queue="nobody").enqueue(fails=False)
    await work.options(id="scheduled", queue="nobody", delay=60).enqueue(fails=False)
    async with running(Worker(app)):
        await reached(await work.options(id="active").enqueue(fails=False), JobState.ACTIVE)
        await reached(await work.options(id="retrying").enqueue(fails=True), JobState.RETRYING)
        for state in ("queued", "scheduled", "active", "retrying"):
            queue = "nobody" if state in ("queued", "scheduled") else "default"
            before = await app.job(state, queue=queue).status()
            again = work.options(id=state, queue=queue, priority=9, delay=5)
            assert (await again.enqueue(fails=False)).outcome is EnqueueOutcome.DUPLICATE
            assert await app.job(state, queue=queue).status() == before
        go_on.set()


async def test_a_failed_or_cancelled_record_is_replaced(app: App[None]) -> None:
    runs = 0

    @app.task(max_attempts=1)
    async def work() -> int:
        nonlocal runs
        runs += 1
        if runs == 1:
            raise ValueError("no")
        return runs

    call = work.options(id="x")
    cancelled = await call.enqueue()
    await cancelled.cancel()
    async with running(Worker(app)):
        assert (await call.enqueue()).outcome is EnqueueOutcome.QUEUED
        assert (await ended(cancelled)).state is JobState.FAILED
        assert await call.enqueue_and_wait() == 2
        record = await cancelled.status()
        assert (record.failures, record.starts, record.errors) == (0, 1, ())
        assert (await app.queue("default").stats()).dead == 0


async def test_the_same_id_in_another_queue_is_another_job(app: App[None]) -> None:
    for queue in ("a", "b"):
        handle = await app.enqueue("task", queue=queue)
        other = await app.enqueue("task", queue=queue)
        assert handle.id != other.id

    @app.task
    async def work() -> None: ...

    outcomes = [(await work.options(id="x", queue=q).enqueue()).outcome for q in "ab"]
    assert outcomes == [EnqueueOutcome.QUEUED] * 2

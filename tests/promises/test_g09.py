"""G9: errors, worker deaths and starts are counted apart; what is nobody's fault is free."""

from __future__ import annotations

import asyncio
from functools import partial

from headrace import App, Context, FailReason, JobState, Retry, Worker
from headrace.testing import running
from tests.support.jobs import ended, reached
from tests.support.silent import claim_and_die
from tests.support.until import until

FAST = Retry(min=0.001, max=0.01)


async def test_each_count_tells_its_own_story(app: App[None]) -> None:
    seen: list[tuple[int, int, int]] = []

    @app.task(max_attempts=5, retry=FAST)
    async def work(context: Context[None]) -> None:
        seen.append((context.start, context.failures, context.stalls))
        if context.failures < 2:
            raise ValueError("no")

    handle = await work.enqueue()
    await claim_and_die(app)
    async with running(Worker(app, lease=0.5, sweep_interval=0.1)):
        record = await ended(handle)
    assert seen == [(2, 0, 1), (3, 1, 1), (4, 2, 1)]
    assert (record.failures, record.stalls, record.starts) == (2, 1, 4)


async def test_a_job_whose_workers_die_too_often_is_a_dead_letter(app: App[None]) -> None:
    # BC-14 and 15, without the processes.
    @app.task(max_stalls=2)
    async def work() -> None: ...

    handle = await work.enqueue()
    neighbour = await work.options(queue="other").enqueue()
    async with running(Worker(app, ["other"], lease=0.5, sweep_interval=0.05)):
        await neighbour.result()
    for deaths in (1, 2):
        assert len(await claim_and_die(app)) == 1
        # It serves the queue, but has no slot free to run the job itself.
        await app.queue("default").pause()
        async with running(Worker(app, ["default"], lease=0.5, sweep_interval=0.05)):
            record = await reached(handle, JobState.QUEUED, JobState.FAILED)
        assert record.stalls == deaths
        await app.queue("default").resume()
    record = await handle.status()
    assert (record.state, record.reason) == (JobState.FAILED, FailReason.STALLED)
    assert (record.failures, record.starts) == (0, 2)
    assert [error.type for error in record.errors] == ["WorkerDied", "WorkerDied"]


def _runs_one(worker: Worker) -> bool:
    return worker.active == 1


async def test_a_graceful_stop_is_free(app: App[None]) -> None:
    is_ready = False

    @app.task(max_attempts=1, max_stalls=1)
    async def work() -> int:
        if not is_ready:
            await asyncio.Event().wait()
        return 5

    handle = await work.enqueue()
    for _ in range(3):
        worker = Worker(app, shutdown_timeout=0)
        async with running(worker):
            await until(partial(_runs_one, worker))
        record = await handle.status()
        assert (record.state, record.failures, record.stalls) == (JobState.QUEUED, 0, 0)
    is_ready = True
    async with running(Worker(app)):
        assert await handle.result() == 5
    assert (await handle.status()).starts == 4

"""G14: a worker that is stopped claims no more, lets jobs end, and hands the rest back."""

from __future__ import annotations

import asyncio

import pytest

from headrace import App, JobState, Worker
from headrace.app import clients_of
from headrace.events import QueueFenced, WorkerQuiet, WorkerStopped, WorkerStopping
from headrace.job import ErrorInfo
from headrace.testing import EventLog, running
from tests.support.jobs import reached
from tests.support.redis_server import RedisServer
from tests.support.until import patience, until


@pytest.fixture
def go_on() -> asyncio.Event:
    return asyncio.Event()


async def test_running_jobs_get_the_grace_and_nothing_else_is_claimed(
    app: App[None], go_on: asyncio.Event
) -> None:
    @app.task
    async def work(number: int) -> int:
        await go_on.wait()
        return number

    handles = [await work.enqueue(number) for number in range(6)]
    log = EventLog()
    worker = Worker(app, concurrency=3, emit=log, shutdown_timeout=20)
    async with running(worker):
        await until(lambda: worker.active == 3)
        asyncio.get_running_loop().call_later(0.1, go_on.set)
    assert [await handle.result() for handle in handles[:3]] == [0, 1, 2]
    assert {(await handle.status()).state for handle in handles[3:]} == {JobState.QUEUED}
    stopping = log.of(WorkerStopping)[0]
    assert (stopping.active, stopping.grace_s) == (3, 20.0)
    assert log.of(WorkerStopped)[0].put_back == 0
    assert (await app.queue("default").stats()).workers == 0


async def test_what_outlasts_the_grace_goes_back_to_the_head_free_of_charge(app: App[None]) -> None:
    cancelled = 0

    @app.task
    async def hang() -> None:
        nonlocal cancelled
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled += 1
            raise

    handles = [await hang.enqueue() for _ in range(5)]
    log = EventLog()
    worker = Worker(app, emit=log, shutdown_timeout=0.1)
    async with running(worker):
        await until(lambda: worker.active == 5)
    assert cancelled == 5
    assert log.of(WorkerStopped)[0].put_back == 5
    for handle in handles:
        record = await handle.status()
        assert (record.state, record.failures, record.stalls) == (JobState.QUEUED, 0, 0)
        assert (record.starts, record.errors) == (1, ())


async def test_a_second_stop_ends_the_grace(app: App[None]) -> None:
    @app.task
    async def hang() -> None:
        await asyncio.Event().wait()

    handle = await hang.enqueue()
    worker = Worker(app, shutdown_timeout=3_600)
    async with asyncio.timeout(patience(15)), running(worker):
        await until(lambda: worker.active == 1)
        worker.stop()
        await asyncio.sleep(0)
        assert worker.active == 1
    assert (await handle.status()).state is JobState.QUEUED


async def test_a_worker_without_jobs_stops_at_once_wherever_it_is(app: App[None]) -> None:
    @app.task
    async def work() -> None: ...

    loop = asyncio.get_running_loop()
    for turns in range(12):
        worker = Worker(app)
        async with running(worker):
            await work.enqueue_and_wait()
            for _ in range(turns):
                await asyncio.sleep(0)
            began = loop.time()
        assert loop.time() - began < 0.8, f"after {turns} turns of the loop"


async def test_a_worker_whose_task_is_cancelled_hands_its_jobs_back(app: App[None]) -> None:
    @app.task
    async def hang() -> None:
        await asyncio.Event().wait()

    handle = await hang.enqueue()
    worker = Worker(app, shutdown_timeout=3_600)
    before = asyncio.all_tasks()
    serving = asyncio.create_task(worker.run())
    await until(lambda: worker.active == 1)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(patience(10)):
            await serving
    record = await handle.status()
    assert (record.state, record.failures, record.stalls) == (JobState.QUEUED, 0, 0)
    left = {task for task in asyncio.all_tasks() - before if "headrace" not in task.get_name()}
    assert left == set(), "no handler runs on"


async def test_a_quiet_worker_goes_on_with_what_it_has(
    app: App[None], go_on: asyncio.Event
) -> None:
    @app.task
    async def work() -> int:
        await go_on.wait()
        return 5

    log = EventLog()
    worker = Worker(app, emit=log, lease=0.5)
    async with running(worker):
        first = await work.enqueue()
        await until(lambda: worker.active == 1)
        worker.quiet()
        second = await work.enqueue()
        await log.wait(WorkerQuiet)
        go_on.set()
        assert await first.result() == 5
        assert (await second.status()).state is JobState.QUEUED
        assert not worker.is_ready
    assert (await second.status()).state is JobState.QUEUED


async def test_a_worker_stops_in_time_while_the_server_is_away() -> None:
    with RedisServer() as server:
        async with App(server.url, retry_for=0.1) as app:

            @app.task
            async def hang() -> None:
                await asyncio.Event().wait()

            await hang.enqueue()
            worker = Worker(app, shutdown_timeout=0.1)
            async with asyncio.timeout(patience(18)), running(worker):
                await until(lambda: worker.active == 1)
                server.kill()


async def test_a_worker_that_was_taken_for_dead_stops_its_handlers_and_begins_anew(
    app: App[None],
) -> None:
    # G7: others may have been given its jobs.
    runs: list[str] = []

    @app.task
    async def work() -> str:
        runs.append("begun")
        if len(runs) == 1:
            try:
                await asyncio.Event().wait()
            finally:
                runs.append("stopped")
        return "by the second"

    log = EventLog()
    async with running(Worker(app, lease=0.6, sweep_interval=0.1, emit=log)):
        handle = await work.enqueue()
        await reached(handle, JobState.ACTIVE)
        (info,) = await app.queue("default").workers()
        await _condemn(app, info.incarnation)
        fenced = (await log.wait(QueueFenced))[0]
        assert (fenced.incarnation, fenced.cancelled) == (info.incarnation, 1)
        assert await handle.result(timeout=patience(10)) == "by the second"
        record = await handle.status()
        assert record.incarnation != info.incarnation
    assert runs == ["begun", "stopped", "begun"]


async def _condemn(app: App[None], incarnation: str) -> None:
    """Reap a live worker, as one would whose looks went wrong."""
    storage = clients_of(app).current().storage

    async def reaped() -> bool:
        seen = (await storage.beats("default"))[incarnation].count
        error = ErrorInfo("WorkerDied", "so it seemed")
        return await storage.reap("default", incarnation, seen=seen, error=error) is not None

    await until(reaped)

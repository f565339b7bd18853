"""G1: an accepted job reaches exactly one terminal state, or is still waiting."""

from __future__ import annotations

import asyncio
from collections import Counter

from headrace import App, JobState, Retry, Worker
from headrace.testing import EventLog, running
from tests.support.redis_server import RedisServer
from tests.support.silent import claim_and_die
from tests.support.until import patience


async def test_every_accepted_job_ends_once_while_workers_die_and_connections_break(
    redis_server: RedisServer, app: App[None]
) -> None:
    runs: Counter[int] = Counter()

    @app.task(max_attempts=5, retry=Retry(min=0.001, max=0.01))
    async def work(number: int) -> int:
        runs[number] += 1
        await asyncio.sleep(0)
        if number % 7 == 0 and runs[number] == 1:
            raise ValueError("no")
        return number

    handles = await app.enqueue_many(work.job(number) for number in range(400))
    assert len(await claim_and_die(app, slots=50)) == 50
    log = EventLog()
    workers = [Worker(app, lease=1.0, sweep_interval=0.1, emit=log, concurrency=5) for _ in "ab"]
    async with running(workers[0]), running(workers[1]):
        with redis_server.client() as client:
            for handle in handles[::100]:
                await handle.result(timeout=patience(15))
                client.client_kill_filter(_type="normal", skipme=True)
        for number, handle in enumerate(handles):
            assert await handle.result(timeout=patience(15)) == number
    stats = await app.queue("default").stats()
    assert (stats.queued, stats.active, stats.retrying, stats.history) == (0, 0, 0, 400)
    assert runs.keys() == set(range(400))


async def test_a_job_without_a_worker_still_waits(app: App[None]) -> None:
    handle = await app.enqueue("task", queue="nobody")
    await app.aclose()
    assert (await handle.status()).state is JobState.QUEUED

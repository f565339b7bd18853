"""An idle worker's next claim waits on the server already, and never more than that one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from headrace import App, Context, JobState, Worker
from headrace.testing import running
from tests.support.calls import calls
from tests.support.redis_server import RedisServer
from tests.support.until import until

QUICK_S = 0.9


@pytest.fixture
def server(redis_url: str) -> Iterator[redis.Redis]:
    """Return a client of the server."""
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        yield client


def blocked(server: redis.Redis) -> list[dict[str, str]]:
    """Return the connections that block."""
    return [entry for entry in server.client_list() if "b" in entry["flags"]]


def asks_ahead(server: redis.Redis) -> bool:
    """Whether one connection blocks, and the server has more of it to do."""
    return [entry["qbuf"] != "0" for entry in blocked(server)] == [True]


def only_blocks(server: redis.Redis) -> bool:
    """Whether one connection blocks, with nothing behind it."""
    return [entry["qbuf"] for entry in blocked(server)] == ["0"]


async def test_a_job_for_an_idle_worker_needs_no_call_but_the_one_that_waits(
    app: App[Any], server: redis.Redis
) -> None:
    @app.task
    async def work() -> int:
        return 1

    async with running(Worker(app)):
        assert await work.enqueue_and_wait() == 1
        await until(lambda: asks_ahead(server))
        waiting = blocked(server)[0]["addr"].rpartition(":")[2]
        with calls(server) as seen:
            assert await work.enqueue_and_wait() == 1
            await until(lambda: asks_ahead(server))
    assert [port for verb, port in seen if verb == "claim"] == [waiting]


async def test_while_a_handler_runs_no_claim_waits(app: App[Any], server: redis.Redis) -> None:
    may_end = asyncio.Event()

    @app.task
    async def work() -> None:
        await may_end.wait()

    async with running(Worker(app)):
        await until(lambda: asks_ahead(server))
        first = await work.enqueue()
        await until(lambda: only_blocks(server))
        second = await work.enqueue()
        await until(lambda: only_blocks(server))
        may_end.set()
        await first.result()
        await second.result()
        await until(lambda: asks_ahead(server))


async def test_a_worker_of_several_queues_claims_when_it_is_woken(
    app: App[Any], server: redis.Redis
) -> None:
    @app.task
    async def work() -> None: ...

    async with running(Worker(app, ["one", "two"], concurrency=1)):
        for queue in ("one", "two", "one"):
            await until(lambda: [c["qbuf"] for c in blocked(server)] == ["0", "0"])
            job = await work.options(queue=queue).enqueue()
            await job.result(timeout=QUICK_S)


async def test_a_job_that_falls_due_soon_is_claimed_in_time(
    app: App[Any], server: redis.Redis
) -> None:
    @app.task
    async def work() -> None: ...

    async with running(Worker(app)):
        await until(lambda: asks_ahead(server))
        job = await work.options(delay=0.05).enqueue()
        await job.result(timeout=QUICK_S)
        # The server's own time-out, which ends 2 seconds later, has nothing to do with it.
        await until(lambda: asks_ahead(server))


async def test_when_the_connection_that_waits_is_lost_the_next_job_runs_once(
    app: App[Any], server: redis.Redis
) -> None:
    runs: Counter[str] = Counter()

    @app.task
    async def work(context: Context[Any]) -> None:
        runs[context.job_id] += 1

    async with running(Worker(app)):
        for _ in range(3):
            await until(lambda: asks_ahead(server))
            await asyncio.gather(
                work.enqueue_and_wait(),
                asyncio.to_thread(server.client_kill_filter, blocked(server)[0]["id"]),
            )
    assert list(runs.values()) == [1] * 3


async def test_a_worker_that_is_stopped_while_a_job_comes_runs_it_or_leaves_it(
    app: App[Any],
) -> None:
    runs: Counter[str] = Counter()

    @app.task
    async def work(context: Context[Any]) -> None:
        runs[context.job_id] += 1

    jobs = []
    for _ in range(20):
        async with running(worker := Worker(app)):
            await work.enqueue_and_wait()
            jobs.append(await work.enqueue())
            worker.stop()
    async with running(Worker(app)):
        for job in jobs:
            await job.result()
            record = await job.status()
            assert (record.state, record.stalls) == (JobState.COMPLETED, 0)
    assert [runs[job.id] for job in jobs] == [1] * 20


async def test_a_server_that_refuses_to_block_is_asked_once_a_second() -> None:
    with RedisServer("--maxmemory", "50mb") as memory, memory.client() as client:
        async with App(memory.url, tenant="full") as app:

            @app.task
            async def work() -> None: ...

            async with running(Worker(app)):
                await work.enqueue_and_wait()
                client.config_set("maxmemory", "1mb")

                def refused() -> int:
                    return int(client.info("commandstats")["cmdstat_blmove"]["rejected_calls"])

                await until(refused)
                before = refused()
                at = asyncio.get_running_loop().time()
                await until(lambda: refused() >= before + 2)
                assert asyncio.get_running_loop().time() - at > QUICK_S
                client.config_set("maxmemory", "50mb")
                await work.enqueue_and_wait()

"""F1: a server that loads its append-only file is away, as in any other outage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import anyio
import pytest
import redis

from headrace import App, StorageUnavailable, Worker
from headrace.events import AttemptStarted, LoopFailed
from headrace.testing import EventLog, running
from tests.support.redis_server import RedisServer
from tests.support.until import patience, until

KEYS = 5_000


@pytest.fixture
async def loads_slowly() -> AsyncIterator[RedisServer]:
    """Run a server that takes over two seconds to load what it holds, and answers meanwhile."""
    delays = ("--key-load-delay", "500", "--loading-process-events-interval-bytes", "1024")
    with RedisServer(*delays, appendonly=True) as server:
        with server.client() as client, client.pipeline(transaction=False) as pipeline:
            for number in range(KEYS):
                pipeline.set(f"ballast:{number}", "x")
            pipeline.execute()
            # While it reads the commands of the increment it would answer nobody.
            client.bgrewriteaof()
            await until(
                lambda: client.info("persistence")["aof_last_rewrite_time_sec"] >= 0, within=10
            )
        yield server


def is_loading(server: RedisServer) -> bool:
    try:
        with server.client() as client:
            client.ping()
    except redis.BusyLoadingError:
        return True
    except redis.ConnectionError:
        return False
    raise AssertionError("it has loaded")


async def test_callers_workers_and_waits_outlast_a_server_that_loads(
    loads_slowly: RedisServer,
) -> None:
    server = loads_slowly
    log = EventLog()
    async with App(server.url, retry_for=30) as app:
        held = asyncio.Event()

        @app.task
        async def wait() -> str:
            await held.wait()
            return "held"

        @app.task(queue="other")
        async def add(one: int, two: int) -> int:
            return one + two

        async with (
            running(Worker(app, ["default"], emit=log)),
            anyio.create_task_group() as group,
        ):
            handle = await wait.enqueue()
            await log.wait(AttemptStarted)
            result = asyncio.create_task(handle.result())
            server.kill()
            group.start_soon(anyio.to_thread.run_sync, server.start)
            await until(lambda: is_loading(server), within=10)

            with pytest.raises(StorageUnavailable, match="loading"):
                await app.queue("default").stats()
            with pytest.raises(StorageUnavailable, match="loading"):
                await handle.status()
            held.set()
            async with asyncio.timeout(patience(15)), running(Worker(app, ["other"], emit=log)):
                later = await add.enqueue(1, 2)
                assert await later.result() == 3
                assert await result == "held"
                assert await wait.enqueue_and_wait() == "held"
    assert log.of(LoopFailed) == []

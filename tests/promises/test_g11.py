"""G11: waiting never hangs, whatever becomes of the job, the message or the connection."""

from __future__ import annotations

import asyncio

from headrace import App, JobNotFound, JobState, Worker
from headrace.testing import running
from tests.support.jobs import reached
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.until import patience, until


async def test_an_end_whose_message_was_lost_is_read_by_the_slow_poll(
    redis_server: RedisServer, app: App[None]
) -> None:
    @app.task
    async def work() -> int:
        return 5

    handle = await work.enqueue()
    waiting = asyncio.create_task(handle.result())
    with redis_server.client() as client:
        channels = await until(lambda: client.pubsub_channels("*:channel:*"))
        # As if the record had never known of the waiter.
        await until(lambda: client.hdel(f"hr:{{{app.tenant}:default}}:job:{handle.id}", "channels"))
        assert len(channels) == 1
    async with running(Worker(app)):
        async with asyncio.timeout(patience(10)):
            assert await waiting == 5


async def test_a_record_that_vanished_ends_the_wait(
    redis_server: RedisServer, app: App[None]
) -> None:
    # BC-25: evicted, expired, or a database that was flushed.
    handle = await app.enqueue("task", queue="default")
    waiting = asyncio.create_task(handle.result())
    with redis_server.client() as client:
        await until(lambda: client.pubsub_channels("*:channel:*"))
        client.flushall()
    async with asyncio.timeout(patience(10)):
        try:
            await waiting
        except JobNotFound:
            return
    raise AssertionError("there was no job any more")


async def test_waits_outlast_a_connection_that_breaks_again_and_again(
    redis_server: RedisServer, redis_url: str
) -> None:
    async with (
        Proxy(redis_server.port) as proxy,
        App(proxy.url, tenant="proxied") as far,
        App(redis_url, tenant="proxied") as near,
    ):

        @near.task(name="work")
        async def work(number: int) -> int:
            return number

        @far.task(name="work")
        async def same(number: int) -> int:
            return number

        handles = [await same.enqueue(number) for number in range(10)]
        waits = [asyncio.create_task(handle.result()) for handle in handles]
        for _ in range(5):
            await until(lambda: proxy.connections > 0)
            proxy.reset_all()
        async with running(Worker(near)):
            for handle in handles:
                await reached(near.job(handle.id), JobState.COMPLETED)
            proxy.reset_all()
        async with asyncio.timeout(patience(15)):
            assert await asyncio.gather(*waits) == list(range(10))

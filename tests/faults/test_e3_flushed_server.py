"""E3: what a process has told the storage once is told again when the storage has lost it."""

from __future__ import annotations

import asyncio
import secrets

import pytest

from headrace import App, JobState, Worker
from headrace.storage.redis import shared
from headrace.testing import running
from tests.support.redis_server import RedisServer
from tests.support.until import until


async def test_after_a_flush_under_a_live_worker_all_that_is_listed_comes_back(
    redis_url: str, redis_server: RedisServer
) -> None:
    async with App(redis_url, tenant=f"test-{secrets.token_hex(6)}") as app:
        go_on = asyncio.Event()

        @app.task
        async def work() -> None:
            await go_on.wait()

        await work.enqueue()
        async with running(Worker(app, lease=1)) as worker:
            await until(lambda: worker.active == 1, within=10)
            with redis_server.client() as client:
                client.flushall()
            await until(lambda: worker.active == 0, within=10, what="the worker hears of it")
            await until(app.queues, within=10)
            await until(app.queue("default").workers, within=10)
            await work.enqueue()
            await until(lambda: worker.active == 1, within=10)
            assert len([row async for row in app.queue("default").jobs(JobState.ACTIVE)]) == 1
            go_on.set()


async def test_a_producer_lists_its_queue_again(
    redis_url: str, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "INTRODUCED_FOR_S", 0.01)
    async with App(redis_url, tenant=f"test-{secrets.token_hex(6)}") as app:
        await app.enqueue("work", queue="mail")
        with redis_server.client() as client:
            client.flushall()

        async def is_listed() -> bool:
            await app.enqueue("work", queue="mail")
            return await app.queues() == ["mail"]

        await until(is_listed, within=10)

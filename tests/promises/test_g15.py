"""G15: with the server's memory full, enqueue fails by a typed error and consumers still drain."""

from __future__ import annotations

import pytest

from headrace import App, StorageFull, Worker
from headrace.testing import running
from tests.support.redis_server import RedisServer
from tests.support.until import patience, until


@pytest.mark.parametrize("is_running_before", [False, True])
async def test_a_full_server_refuses_new_jobs_and_drains_the_old(
    *, is_running_before: bool
) -> None:
    with RedisServer() as server:
        async with App(server.url, retry_for=0.5) as app:

            @app.task
            async def work(number: int) -> int:
                return number

            async def fill() -> None:
                with server.client() as client:
                    used = int(client.info("memory")["used_memory"])
                    client.config_set("maxmemory", max(1, used - 100_000))

            handles = await app.enqueue_many(work.job(number) for number in range(1_000))
            worker = Worker(app, concurrency=20, lease=1.0, sweep_interval=0.2)
            if is_running_before:
                await app.queue("default").pause()
                async with running(worker):
                    await fill()
                    await app.queue("default").resume()
                    await drained(app, count=1_000)
            else:
                # The library must be on the server: it can't be loaded without memory.
                await fill()
                for call in (work.enqueue(1), app.enqueue_many([work.job(1)])):
                    with pytest.raises(StorageFull, match="let workers drain"):
                        await call
                async with running(worker):
                    await drained(app, count=1_000)
            with server.client() as client:
                client.config_set("maxmemory", 0)
            assert await handles[-1].result(timeout=patience(10)) == 999
            assert (await app.queue("default").stats()).completed == 1_000


async def drained(app: App[None], *, count: int) -> None:
    async def is_drained() -> bool:
        return (await app.queue("default").stats()).completed == count

    await until(is_drained, within=15)

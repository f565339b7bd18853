"""G15: with the server's memory full, enqueue fails by a typed error and consumers still drain."""

from __future__ import annotations

import pytest

from headrace import App, StorageFull, Worker
from headrace.storage import open_storage
from headrace.testing import running
from tests.support.redis_server import RedisServer
from tests.support.until import patience, until


async def fill(server: RedisServer) -> None:
    """Let there be no room any more."""
    with server.client() as client:
        used = int(client.info("memory")["used_memory"])
        client.config_set("maxmemory", max(1, used - 100_000))


@pytest.mark.parametrize("is_running_before", [False, True])
async def test_a_full_server_refuses_new_jobs_and_drains_the_old(
    *, is_running_before: bool
) -> None:
    with RedisServer() as server:
        async with App(server.url, retry_for=0.5) as app:

            @app.task
            async def work(number: int) -> int:
                return number

            handles = await app.enqueue_many(work.job(number) for number in range(1_000))
            worker = Worker(app, concurrency=20, lease=1.0, sweep_interval=0.2)
            if is_running_before:
                await app.queue("default").pause()
                async with running(worker):
                    await fill(server)
                    await app.queue("default").resume()
                    await drained(app, count=1_000)
            else:
                # The library must be on the server: it can't be loaded without memory.
                await fill(server)
                for call in (work.enqueue(1), app.enqueue_many([work.job(1)])):
                    with pytest.raises(StorageFull, match="let workers drain"):
                        await call
                async with running(worker):
                    await drained(app, count=1_000)
            with server.client() as client:
                client.config_set("maxmemory", 0)
            assert await handles[-1].result(timeout=patience(10)) == 999
            assert (await app.queue("default").stats()).last_minute.completed == 1_000


async def test_a_full_server_is_swept_as_any_other() -> None:
    """Or the loop that sweeps would be down, and its worker not ready, until there is room."""
    with RedisServer() as server:
        storage = open_storage(server.url)
        await storage.check()
        await storage.stats("default")  # which loads the library
        await fill(server)
        assert (await storage.repair("default")).mended == 0
        assert await storage.beats("default") == {}
        assert await storage.prune("default") == ""
        assert await storage.held("default", "w1") == []
        await storage.aclose()


async def drained(app: App[None], *, count: int) -> None:
    async def is_drained() -> bool:
        return (await app.queue("default").stats()).last_minute.completed == count

    await until(is_drained, within=15)

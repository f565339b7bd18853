"""F2: a stop does no harm to a server that holds its clients up (CLIENT PAUSE)."""

from __future__ import annotations

import asyncio
import secrets

import pytest

from headrace import App, Worker
from headrace.storage.base import Waiter
from headrace.storage.connect import open_storage
from headrace.storage.values import CallId
from headrace.testing import running
from tests.support.redis_server import RedisServer
from tests.support.until import until


def blocked(server: RedisServer, command: str = "blmove") -> bool:
    """Whether somebody waits in a command, or is held up with it."""
    with server.client() as client:
        clients = [line for line in client.client_list() if line["cmd"] == command]
    return any("b" in line["flags"] for line in clients)


@pytest.mark.parametrize("has_claim", [False, True])
async def test_a_wait_that_is_held_up_ends_and_leaves_the_server_alive(*, has_claim: bool) -> None:
    with RedisServer() as server:
        storage = open_storage(server.url, tenant="t")
        try:
            await storage.check()
            waiter: Waiter = storage.open_waiter("q", "worker", "default")
            # The connection opens before the pause.
            assert not await waiter.wait(0.01)
            with server.client() as client:
                client.client_pause(8000, all=False)
            waiting = asyncio.create_task(waiter.wait(2))
            claiming = []
            if has_claim:
                call, nonce = CallId("worker", 1), f"worker/{secrets.token_hex(8)}"
                await asyncio.sleep(0)
                claiming = [
                    asyncio.create_task(waiter.claim(call=call, nonce=nonce, slots={"default": 1}))
                ]
            await until(lambda: blocked(server), within=10)
            async with asyncio.timeout(2):
                await waiter.interrupt()
                assert not await waiting
                await asyncio.gather(*claiming, return_exceptions=True)
            await waiter.aclose()
            await until(lambda: not blocked(server), within=10)
            with server.client() as client:
                assert client.execute_command("CLIENT UNPAUSE")
                assert client.ping()
        finally:
            await storage.aclose()


async def test_a_worker_that_stops_while_clients_are_held_up_leaves_the_server_alive() -> None:
    with RedisServer() as server:
        async with App(server.url) as app:

            @app.task
            async def work() -> int:
                return 5

            async with running(Worker(app)):
                assert await work.enqueue_and_wait() == 5
                await until(lambda: blocked(server), within=10)
                with server.client() as client:
                    client.client_pause(8000, all=False)
                # The claim behind the blocking call is held up when that has ended.
                await until(lambda: blocked(server, "fcall"), within=10)
            with server.client() as client:
                client.execute_command("CLIENT UNPAUSE")
            async with running(Worker(app)):
                assert await work.enqueue_and_wait() == 5


async def test_an_idle_worker_stops_at_once(app: App[None]) -> None:
    @app.task
    async def work() -> int:
        return 5

    worker = Worker(app)
    running_it = asyncio.create_task(worker.run())
    assert await work.enqueue_and_wait() == 5
    worker.stop()
    async with asyncio.timeout(1.5):
        await running_it

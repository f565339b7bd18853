"""Servers that can't keep the promises are refused with what to do, and passwords stay unseen."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest

from headrace import App, StorageRefused, StorageUnavailable, Worker
from headrace.testing import running
from tests.support.redis_server import RedisServer

CANARY = "S3CR3T-canary"


@pytest.fixture(scope="module")
def evicting() -> Iterator[RedisServer]:
    with RedisServer() as server:
        with server.client() as client:
            client.config_set("maxmemory-policy", "allkeys-lru")
        yield server


@pytest.fixture(scope="module")
def locked() -> Iterator[RedisServer]:
    with RedisServer() as server:
        with server.client() as client:
            client.execute_command(
                "ACL", "SETUSER", "headrace", "on", f">{CANARY}", "~*", "&*", "+@all"
            )
            client.execute_command("ACL", "SETUSER", "reader", "on", f">{CANARY}", "~*", "+get")
            client.config_set("requirepass", CANARY)
        yield server


def with_user(server: RedisServer, user: str) -> str:
    return server.url.replace("redis://", f"redis://{user}@")


async def test_a_server_that_evicts_is_refused_by_the_app_and_by_a_worker(
    evicting: RedisServer,
) -> None:
    # G4: a setting that can't be honoured refuses to start.
    async with App(evicting.url) as app:

        @app.task
        async def work() -> None: ...

        for call in (app.connect(), work.enqueue(), app.job("x").status()):
            with pytest.raises(StorageRefused, match="maxmemory-policy is allkeys-lru"):
                await call
        with pytest.raises(StorageRefused, match="allow_eviction=True"):
            await Worker(app).run()


async def test_eviction_can_be_accepted(evicting: RedisServer) -> None:
    async with App(evicting.url, allow_eviction=True) as app:

        @app.task
        async def work() -> int:
            return 5

        async with running(Worker(app)):
            assert await work.enqueue_and_wait() == 5


@pytest.mark.parametrize(
    ("user", "words"),
    [
        ("", "Authentication required"),
        (":wrong", "invalid username-password"),
        ("headrace:wrong", "invalid username-password"),
        (f"nobody:{CANARY}", "invalid username-password"),
    ],
)
async def test_wrong_credentials_are_refused_at_once(
    locked: RedisServer, user: str, words: str
) -> None:
    async with App(with_user(locked, user) if user else locked.url) as app:

        @app.task
        async def work() -> None: ...

        for call in (app.connect(), work.enqueue(), Worker(app).run()):
            with pytest.raises(StorageRefused) as caught:
                await call
            assert words.lower() in str(caught.value).lower()
            assert "check the URL's user, password" in str(caught.value)
            assert CANARY not in f"{caught.value!r} {caught.value.__cause__!r} {app!r}"
    gc.collect()


@pytest.mark.parametrize("user", [f":{CANARY}", f"headrace:{CANARY}"])
async def test_right_credentials_work_for_all_connections(locked: RedisServer, user: str) -> None:
    async with App(with_user(locked, user), tenant="right") as app:

        @app.task
        async def work() -> int:
            return 5

        async with running(Worker(app, lease=0.6)):
            assert await work.enqueue_and_wait() == 5
            assert CANARY not in repr(app)


async def test_a_user_without_the_rights_is_refused_by_name_of_the_right(
    locked: RedisServer,
) -> None:
    async with App(with_user(locked, f"reader:{CANARY}")) as app:
        with pytest.raises(StorageRefused, match="no permissions") as caught:
            await app.connect()
        assert CANARY not in str(caught.value)


async def test_an_unreachable_server_is_named_without_its_password() -> None:
    async with App(f"redis://user:{CANARY}@127.0.0.1:1", retry_for=0.01) as app:
        with pytest.raises(StorageUnavailable, match=r"127\.0\.0\.1:1") as caught:
            await app.connect()
        assert CANARY not in str(caught.value)


async def test_an_unreachable_server_is_tried_for_as_long_as_said() -> None:
    loop = asyncio.get_running_loop()
    async with App("redis://127.0.0.1:1", retry_for=0.3) as app:

        @app.task
        async def work() -> None: ...

        began = loop.time()
        with pytest.raises(StorageUnavailable):
            await work.enqueue()
        assert loop.time() - began < 3

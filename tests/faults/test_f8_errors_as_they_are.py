"""F8: an error arrives as what it is, in no group and not as a time-out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from headrace import App, StorageRefused, Worker
from tests.support.redis_server import RedisServer
from tests.support.until import patience


@pytest.fixture(scope="module")
def guarded() -> Iterator[RedisServer]:
    """Run a server with users who lack a right each."""
    with RedisServer() as server:
        with server.client() as client:
            for user, rights in {
                "no-calls": ["~*", "&*", "+@all", "-fcall"],
                "no-channels": ["~*", "resetchannels", "+@all"],
            }.items():
                client.execute_command("ACL", "SETUSER", user, "on", ">pw", *rights)
        yield server


@pytest.fixture
async def app(guarded: RedisServer, request: pytest.FixtureRequest) -> AsyncIterator[App[None]]:
    async with App(guarded.url.replace("redis://", f"redis://{request.param}:pw@")) as app:
        yield app


@pytest.mark.parametrize("app", ["no-calls"], indirect=True)
@pytest.mark.parametrize("queues", [["one"], ["one", "two"]])
async def test_a_worker_that_may_not_work_raises_that_itself(
    app: App[None], queues: list[str]
) -> None:
    async with asyncio.timeout(patience(10)):
        with pytest.raises(StorageRefused, match="no permissions to run the 'fcall'"):
            await Worker(app, queues).run()


@pytest.mark.parametrize("app", ["no-calls", "no-channels"], indirect=True)
async def test_a_wait_that_is_not_permitted_says_so(app: App[None]) -> None:
    handle = app.job("some")
    for timeout in (1, None):
        async with asyncio.timeout(2):
            with pytest.raises(StorageRefused, match="no permissions"):
                await handle.result(timeout=timeout)

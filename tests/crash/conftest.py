"""Crews of worker processes, on the session's server, in a directory, or on a server to break."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
import redis

from headrace import App
from tests.apps.crash_app import QUEUE
from tests.crash.crew import Crew
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer


async def watch_all(producer: App[None]) -> None:
    """Connect, and have every event kept: the checker counts outcomes by them."""
    await producer.queue(QUEUE).configure(events=1_000_000)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what has a crew on Redis and in a directory; on Redis alone what looks at the server.

    Where a test asks for an event loop, Redis has both and the directory one: the loop's part in it
    is the same.
    """
    names = set(metafunc.fixturenames)
    is_said = any(
        "crew_url" in mark.args for mark in metafunc.definition.iter_markers("parametrize")
    )
    if "crew_url" not in names or is_said:
        return
    kinds = ["redis"] if names & {"redis_server", "redis_url"} else ["redis", "file"]
    if "loop" not in names:
        metafunc.parametrize("crew_url", kinds, indirect=True)
        return
    loops = {"redis": ("asyncio", "uvloop"), "file": ("uvloop",)}
    pairs = [(kind, loop) for kind in kinds for loop in loops[kind]]
    metafunc.parametrize(("crew_url", "loop"), pairs, indirect=["crew_url"])


@pytest.fixture
def crew_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty storage that processes can share."""
    if request.param == "file":
        return f"file://{tmp_path}/data"
    url: str = request.getfixturevalue("redis_url")
    return url


@pytest.fixture
def crew(crew_url: str, tmp_path: Path) -> Iterator[Crew]:
    """Return a crew on an empty storage."""
    with Crew(crew_url, tmp_path) as started:
        yield started


@pytest_asyncio.fixture
async def app(crew: Crew) -> AsyncIterator[App[None]]:
    """Return a producer beside the crew."""
    async with crew.app() as producer:
        await watch_all(producer)
        yield producer


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator[redis.Redis]:
    """Return a plain client of the session's server."""
    with redis_server.client() as connected:
        yield connected


@pytest_asyncio.fixture
async def proxy(redis_server: RedisServer) -> AsyncIterator[Proxy]:
    """Return a proxy before the session's server."""
    async with Proxy(redis_server.port) as started:
        yield started


@pytest.fixture
def own_server() -> Iterator[RedisServer]:
    """Return a server of the test's own that writes each command to its append-only file."""
    with RedisServer("--appendfsync", "always", appendonly=True) as server:
        yield server


@pytest.fixture
def own_crew(own_server: RedisServer, tmp_path: Path) -> Iterator[Crew]:
    """Return a crew on the test's own server."""
    with Crew(own_server.url, tmp_path) as started:
        yield started


@pytest_asyncio.fixture
async def own_app(own_crew: Crew) -> AsyncIterator[App[None]]:
    """Return a producer beside the own crew."""
    async with own_crew.app() as producer:
        await watch_all(producer)
        yield producer

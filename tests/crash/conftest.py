"""Crews of worker processes, on the session's server or on one that the test may break."""

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


@pytest.fixture
def crew(redis_url: str, tmp_path: Path) -> Iterator[Crew]:
    """Return a crew on the session's server."""
    with Crew(redis_url, tmp_path) as started:
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

"""The Redis server that the tests of a session share, and an app on it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator

import pytest

from headrace import App
from tests.support.redis_server import RedisServer


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """Run one server for the session; a test that breaks its server starts one of its own."""
    with RedisServer() as server:
        yield server


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """Return the address of the session's server, emptied; loaded functions stay."""
    with redis_server.client() as client:
        client.flushall()
    return redis_server.url


@pytest.fixture
async def app(redis_url: str) -> AsyncIterator[App[None]]:
    """Return an app on the session's server with a tenant of its own; closed at the end."""
    async with App(redis_url, tenant=f"test-{secrets.token_hex(6)}") as app:
        yield app

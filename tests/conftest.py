"""The Redis server that the tests of a session share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

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

"""The storage on Redis alone, and a look behind its back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import redis

from headrace.testing.contract import Subject
from tests.storage.conftest import RedisSubject, in_order
from tests.support.redis_server import RedisServer

ROOT = "hr:{acme:mail}"


@pytest.fixture
async def subject(redis_server: RedisServer) -> AsyncIterator[Subject]:
    """Open an empty storage, and see at the end that it is in order."""
    with redis_server.client() as client:
        client.flushall()
    async with in_order(RedisSubject(redis_server.url)) as subject:
        yield subject


@pytest.fixture
def server(redis_server: RedisServer) -> Iterator[redis.Redis]:
    """Return a plain client of the server."""
    with redis_server.client() as client:
        yield client

"""Storages under contract: each is checked to be in order after every test.

To put another storage under the same tests, write its `Subject` and add it to the parameters of
`subject`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import pytest
import redis

from headrace.storage.base import Storage
from headrace.storage.redis.storage import RedisStorage
from tests.storage.steps import Client, Incarnation
from tests.support import leaks
from tests.support.clock import ServerClock, library_with_test_clock
from tests.support.redis_server import RedisServer


class Subject(Protocol):
    """A storage, and what tests may do behind its back."""

    storage: Storage

    def advance(self, ms: int) -> int:
        """Move the storage's clock on and return its time, in milliseconds since the epoch."""

    def dump(self, *, with_calls: bool = True) -> Any:
        """Return all that is stored, to compare; on demand without the memory of calls."""

    def problems(self) -> list[str]:
        """Return which rules the stored data break."""

    async def aclose(self) -> None:
        """Close the storage and what else is open."""


class RedisSubject:
    """The storage on a real server."""

    def __init__(self, url: str) -> None:
        self._client = redis.Redis.from_url(url)
        self._clock = ServerClock(self._client)
        self.storage: Storage = RedisStorage(url, tenant="acme", source=library_with_test_clock())

    def advance(self, ms: int) -> int:
        return self._clock.advance(ms)

    def dump(self, *, with_calls: bool = True) -> dict[str, tuple[Any, bool]]:
        dumped = leaks.dump(self._client)
        return dumped if with_calls else leaks.without_calls(dumped)

    def problems(self) -> list[str]:
        return leaks.problems(self._client)

    async def aclose(self) -> None:
        await self.storage.aclose()
        self._client.close()


@asynccontextmanager
async def in_order(subject: Subject) -> AsyncIterator[Subject]:
    """Close a subject at the end, and see that what it stored is in order."""
    try:
        yield subject
        assert subject.problems() == []
    finally:
        await subject.aclose()


@pytest.fixture(params=["redis"])
async def subject(request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
    """Open an empty storage of each kind, and see at the end that it is in order."""
    server: RedisServer = request.getfixturevalue("redis_server")
    with server.client() as client:
        client.flushall()
    async with in_order(RedisSubject(server.url)) as subject:
        yield subject


@pytest.fixture
def storage(subject: Subject) -> Storage:
    return subject.storage


class Advance(Protocol):
    """Moves the storage's clock on and returns its time; 0 only tells the time."""

    def __call__(self, ms: int) -> int: ...


class Dump(Protocol):
    """Returns all that is stored, to compare."""

    def __call__(self, *, with_calls: bool = True) -> Any: ...


@pytest.fixture
def advance(subject: Subject) -> Advance:
    return subject.advance


@pytest.fixture
def dump(subject: Subject) -> Dump:
    return subject.dump


@pytest.fixture
def client(storage: Storage) -> Client:
    """Return a client that enqueues."""
    return Client(storage)


@pytest.fixture
async def worker(storage: Storage) -> Incarnation:
    """Return a registered incarnation."""
    return await Incarnation(storage, "w1").register()


@pytest.fixture
async def other(storage: Storage) -> Incarnation:
    """Return a second registered incarnation."""
    return await Incarnation(storage, "w2").register()

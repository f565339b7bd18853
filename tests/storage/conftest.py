"""Storages under contract: each is checked to be in order after every test.

To put another storage under the same tests, write its `Subject` and add it to the parameters of
`subject`.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest
import redis

from headrace.storage.base import Storage
from headrace.storage.redis.storage import RedisStorage
from headrace.storage.sqlite.storage import SqliteStorage
from tests.storage.steps import Client, Incarnation
from tests.support import leaks, sqlite_check
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


class SqliteSubject:
    """The embedded storage, in memory or in a directory."""

    def __init__(self, url: str) -> None:
        self._now = time.time_ns() // 1_000_000
        self._sqlite = SqliteStorage(url, tenant="acme", clock=lambda: self._now)
        self.storage: Storage = self._sqlite

    def advance(self, ms: int) -> int:
        self._now += ms
        return self._now

    def _call(self, work: Any) -> Any:
        return self._sqlite.engine().writer.call(work, lambda: self._now, timeout_s=10)

    def dump(self, *, with_calls: bool = True) -> Any:
        return self._call(partial(sqlite_check.dump, with_calls=with_calls))

    def problems(self) -> list[str]:
        found: list[str] = self._call(sqlite_check.problems)
        return found

    async def aclose(self) -> None:
        await self.storage.aclose()


@asynccontextmanager
async def in_order(subject: Subject) -> AsyncIterator[Subject]:
    """Close a subject at the end, and see that what it stored is in order."""
    try:
        yield subject
        assert subject.problems() == []
    finally:
        await subject.aclose()


@pytest.fixture(params=["redis", "memory", "file"])
async def subject(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Subject]:
    """Open an empty storage of each kind, and see at the end that it is in order."""
    async with in_order(open_subject(request, tmp_path)) as subject:
        yield subject


def open_subject(request: pytest.FixtureRequest, directory: Path) -> Subject:
    """Return an empty storage of the kind that the test is run with."""
    if request.param == "memory":
        return SqliteSubject(f"memory://test-{secrets.token_hex(6)}")
    if request.param == "file":
        return SqliteSubject(f"file://{directory}/data")
    server: RedisServer = request.getfixturevalue("redis_server")
    with server.client() as client:
        client.flushall()
    return RedisSubject(server.url)


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

"""Our storages as subjects of the contract, and its fixtures for tests that are no class."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import redis

from headrace.storage.base import Storage
from headrace.storage.redis.storage import BlockingRedisStorage, RedisStorage
from headrace.storage.sqlite.engine import engines
from headrace.storage.sqlite.storage import BlockingSqliteStorage, SqliteStorage
from headrace.testing.contract import Subject
from headrace.testing.contract.fixtures import Advance, Dump
from headrace.testing.contract.steps import ContractClient, ContractIncarnation
from tests.storage.stepped import stepped
from tests.support import leaks, sqlite_check
from tests.support.clock import SCHEDULES_LIMIT, ServerClock, library_with_test_clock


class RedisSubject(Subject):
    """The storage on a real server, or the blocking one."""

    schedules_limit = SCHEDULES_LIMIT

    def __init__(self, url: str, *, is_blocking: bool = False) -> None:
        self._client = redis.Redis.from_url(url)
        self._clock = ServerClock(self._client)
        source = library_with_test_clock()
        self.storage: Storage = (
            stepped(BlockingRedisStorage(url, source=source).for_tenant("acme"))
            if is_blocking
            else RedisStorage(url, source=source).for_tenant("acme")
        )

    async def advance(self, ms: int) -> int:
        return self._clock.advance(ms)

    async def dump(self, *, with_calls: bool = True) -> dict[str, tuple[Any, bool]]:
        dumped = leaks.dump(self._client)
        return dumped if with_calls else leaks.without_calls(dumped)

    async def problems(self) -> list[str]:
        return leaks.problems(self._client)

    async def aclose(self) -> None:
        await self.storage.aclose()
        self._client.close()


class SqliteSubject(Subject):
    """The embedded storage, in memory or in a directory, or the blocking one."""

    schedules_limit = 600

    def __init__(self, url: str, *, is_blocking: bool = False) -> None:
        self._now = time.time_ns() // 1_000_000
        blocking = BlockingSqliteStorage(url, clock=lambda: self._now).for_tenant("acme")
        waiting = SqliteStorage(url, clock=lambda: self._now).for_tenant("acme")
        self._sqlite = blocking if is_blocking else waiting
        self._sqlite.schedules_limit = self.schedules_limit
        self.storage: Storage = stepped(blocking) if is_blocking else waiting

    async def advance(self, ms: int) -> int:
        self._now += ms
        return self._now

    def _call(self, work: Any) -> Any:
        return self._sqlite.engine().writer.call(work, lambda: self._now, timeout_s=10)

    async def dump(self, *, with_calls: bool = True) -> Any:
        return self._call(partial(sqlite_check.dump, with_calls=with_calls))

    async def problems(self) -> list[str]:
        found: list[str] = self._call(sqlite_check.problems)
        return found

    async def aclose(self) -> None:
        await self.storage.aclose()
        engines.discard(self._sqlite.place)  # what is in memory would stay as long as the process


@asynccontextmanager
async def in_order(subject: Subject) -> AsyncIterator[Subject]:
    """Close a subject at the end, and see that what it stored is in order."""
    try:
        yield subject
        assert await subject.problems() == []
    finally:
        await subject.aclose()


@pytest.fixture
def storage(subject: Subject) -> Storage:
    return subject.storage


@pytest.fixture
def advance(subject: Subject) -> Advance:
    return subject.advance


@pytest.fixture
def dump(subject: Subject) -> Dump:
    return subject.dump


@pytest.fixture
def client(storage: Storage) -> ContractClient:
    """Return a client that enqueues."""
    return ContractClient(storage)


@pytest.fixture
async def worker(storage: Storage) -> ContractIncarnation:
    """Return a registered incarnation."""
    return await ContractIncarnation(storage, "w1").register()


@pytest.fixture
async def other(storage: Storage) -> ContractIncarnation:
    """Return a second registered incarnation."""
    return await ContractIncarnation(storage, "w2").register()

"""Each storage as the machine drives it: with a clock, and a look at all that is stored."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import redis

from headrace.job import DEFAULT_LANE, PROCESS_LANE
from headrace.storage.base import Storage
from headrace.storage.redis import keys
from headrace.storage.redis.library import Library, assemble
from headrace.storage.redis.storage import RedisStorage
from headrace.storage.sqlite.storage import SqliteStorage
from tests.model import bulk_dumps, gate_dumps, schedule_dumps, sqlite_dump
from tests.model.places import Dump
from tests.model.redis_dump import Deaths, RedisDump, ServerState, read_server
from tests.model.schedules import SCHEDULES_LIMIT
from tests.support import clock, leaks, sqlite_check

QUEUE = "mail"
LANES = (DEFAULT_LANE, PROCESS_LANE)
TENANT, NEIGHBOUR = "acme", "acme2"
START_MS = 1_800_000_003_000
"""The time at the start: fixed, so that a run can be repeated exactly."""


class Look(NamedTuple):
    """A storage at one moment: the queue, the tenant's schedules, the rest, and what is wrong.

    ``numbers`` are those of ready jobs' places, where the storage keeps any.
    """

    queue: Dump
    schedules: Dump
    others: Any
    problems: list[str]
    numbers: Mapping[str, float] = {}


class ModelSubject(ABC):
    """A storage under the machine.

    Attributes:
        storage: what is driven.
        now: the storage's time.
    """

    def __init__(self) -> None:
        self.now: int = START_MS
        self.storage: Storage = self.open(TENANT)

    @abstractmethod
    def open(self, tenant: str) -> Storage:
        """Return a new storage on the data."""

    async def reopen(self) -> None:
        """Close the storage and open another on the same data; a token may get lost."""
        await self.storage.aclose()
        self.storage = self.open(TENANT)

    @abstractmethod
    async def advance(self, ms: int) -> None:
        """Move the clock on, or back."""

    @abstractmethod
    async def look(self) -> Look:
        """Return all that is stored."""

    @abstractmethod
    async def lose_token(self) -> bool:
        """Take the wake-up tokens away, behind everybody's back; whether one was there."""

    async def aclose(self) -> None:
        """Close everything."""
        await self.storage.aclose()


@cache
def _library() -> Library:
    """Return the library with the test's clock, in which a tenant has few schedules."""
    return assemble({"clock": f"{clock.CLOCK}limits.SCHEDULES_LIMIT = {SCHEDULES_LIMIT}\n"})


class RedisSubject(ModelSubject):
    """On a server, which is emptied first.

    Args:
        url: of the server.
        restart: kills the server and starts it again on its data; None: reopening only connects
            anew.
    """

    def __init__(self, url: str, *, restart: Callable[[], None] | None = None) -> None:
        self._url = url
        self._restart = restart
        self._client = redis.Redis.from_url(url)
        self._client.flushall()
        self._client.set(clock.KEY, START_MS)
        self._root = keys.root(TENANT, QUEUE)
        self._deaths = Deaths()
        super().__init__()

    def open(self, tenant: str) -> Storage:
        return RedisStorage(self._url, source=_library()).for_tenant(tenant)

    async def reopen(self) -> None:
        if self._restart is not None:
            await self.aclose()
            self._restart()
            self._client = redis.Redis.from_url(self._url)
        await super().reopen()

    async def advance(self, ms: int) -> None:
        self.now = self._client.incrby(clock.KEY, ms)
        if ms < 0:
            for key, expires in self._deaths.put_off(-ms).items():
                self._client.pexpireat(key, expires)
        if dead := self._deaths.due(self.now):
            self._client.unlink(*dead)

    async def look(self) -> Look:
        server = read_server(self._client)
        self._deaths.note(server, self._root, self.now)
        read = RedisDump(server, self._root, self._deaths)
        queue = {
            **read.read(),
            **gate_dumps.of_server(server, self._root, self.now),
            "bulk": bulk_dumps.of_server(server, self._root, self._deaths),
        }
        schedules = schedule_dumps.of_server(server, TENANT, self.now)
        dumped = {key: (value.value, value.expires >= 0) for key, value in server.keys.items()}
        problems = read.problems + leaks.problems_in(dumped)
        numbers = gate_dumps.numbers_of_server(server, self._root)
        return Look(queue, schedules, self._others(server), problems, numbers)

    def _others(self, server: ServerState) -> dict[str, Any]:
        ours = (self._root, keys.queues(TENANT), f"{keys.tenant_root(TENANT)}:schedule")
        return {key: value for key, value in server.keys.items() if not key.startswith(ours)}

    async def lose_token(self) -> bool:
        return bool(self._client.delete(*(keys.wake(TENANT, QUEUE, lane) for lane in LANES)))

    async def aclose(self) -> None:
        await super().aclose()
        self._client.close()


class SqliteSubject(ModelSubject):
    """On an embedded database.

    Args:
        kind: ``memory`` or ``file``.
        make: the class of the storage, another one to test the machine.
    """

    def __init__(self, kind: str, make: type[SqliteStorage] = SqliteStorage) -> None:
        self._make = make
        self._directory = tempfile.mkdtemp(prefix="headrace-model-") if kind == "file" else None
        # Without the waits for the disk: no test here cuts the power.
        self._url = (
            f"file://{self._directory}?sync=normal"
            if self._directory
            else f"memory://model-{secrets.token_hex(6)}"
        )
        super().__init__()

    def open(self, tenant: str) -> SqliteStorage:
        storage = self._make(self._url, clock=lambda: self.now).for_tenant(tenant)
        storage.schedules_limit = SCHEDULES_LIMIT
        return storage

    @property
    def _sqlite(self) -> SqliteStorage:
        assert isinstance(self.storage, SqliteStorage)
        return self.storage

    async def advance(self, ms: int) -> None:
        self.now += ms

    async def look(self) -> Look:
        name = (TENANT, QUEUE)
        return self._sqlite.engine().writer.call(
            lambda step: Look(
                {
                    **sqlite_dump.dump(step, name),
                    **gate_dumps.of_database(step, QUEUE),
                    "bulk": bulk_dumps.of_database(step, name),
                },
                schedule_dumps.of_database(step, TENANT),
                sqlite_dump.others(step, name),
                sqlite_check.problems(step),
                gate_dumps.numbers_of_database(step, QUEUE),
            ),
            lambda: self.now,
            timeout_s=10,
        )

    async def lose_token(self) -> bool:
        waiters = [self._sqlite.open_waiter(QUEUE, "thief", lane) for lane in LANES]
        return any([await waiter.wait(0) for waiter in waiters])

    async def aclose(self) -> None:
        engine = self._sqlite.engine()
        await super().aclose()
        engine.close_kept()
        if self._directory is not None:
            shutil.rmtree(self._directory)

"""The storage on SQLite: its roles over the engine of one database."""

from __future__ import annotations

import atexit
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Self, TypeVar
from weakref import WeakSet

from headrace.job import DEFAULT_TENANT, check_name
from headrace.storage.base import VERBS
from headrace.storage.connections import Inbox
from headrace.storage.sqlite.blocking import SqliteInbox
from headrace.storage.sqlite.engine.engine import Engine
from headrace.storage.sqlite.engine.engines import detach, detach_now
from headrace.storage.sqlite.engine.location import DatabaseLocation, place_of
from headrace.storage.sqlite.engine.request import Work
from headrace.storage.sqlite.engine.step import Clock
from headrace.storage.sqlite.roles.admin import SqliteAdmin
from headrace.storage.sqlite.roles.bulk_reader import SqliteBulkReader
from headrace.storage.sqlite.roles.bulk_writer import SqliteBulkWriter
from headrace.storage.sqlite.roles.consumer import SqliteConsumer
from headrace.storage.sqlite.roles.doctor import SqliteDoctor
from headrace.storage.sqlite.roles.inspector import SqliteInspector
from headrace.storage.sqlite.roles.limiter import SqliteLimiter
from headrace.storage.sqlite.roles.maintenance import SqliteMaintenance
from headrace.storage.sqlite.roles.producer import SqliteProducer
from headrace.storage.sqlite.roles.scheduler import SqliteScheduler
from headrace.storage.sqlite.roles.striker import SqliteStriker
from headrace.storage.steps import sent

T = TypeVar("T")


def wall_clock() -> int:
    """Return this host's time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class SqliteStorage(
    SqliteProducer,
    SqliteConsumer,
    SqliteMaintenance,
    SqliteInspector,
    SqliteAdmin,
    SqliteLimiter,
    SqliteStriker,
    SqliteScheduler,
    SqliteBulkWriter,
    SqliteBulkReader,
    SqliteDoctor,
):
    """Every verb on one database.

    Args:
        url: ``memory://``, ``memory://name`` or ``file:///absolute/directory``.
        allow_eviction: nothing is ever evicted here.
        clock: another one for tests.

    Raises:
        InvalidOption: the URL can't be read.
    """

    def __init__(
        self, url: str, *, allow_eviction: bool = False, clock: Clock = wall_clock
    ) -> None:
        self.tenant: str = DEFAULT_TENANT
        self.place: DatabaseLocation = place_of(url)
        self.clock: Clock = clock

    def for_tenant(self, tenant: str) -> Self:
        """Return the storage of another tenant on the same engine."""
        other = copy(self)
        other.tenant = check_name(tenant, what="tenant")
        other.attached = None
        return other

    async def aclose(self) -> None:
        """Leave the engine, which ends with its last user."""
        engine = self._leave()
        if engine is not None:
            await detach(engine)

    def _leave(self) -> Engine | None:
        """Use the engine no longer, and return it to one thread alone."""
        engine: Engine | None = vars(self).pop("attached", None)
        return engine


class BlockingSqliteStorage(SqliteStorage):
    """Every verb on one database, for any number of threads; see `BlockingStorage`.

    Args and what it raises are those of `SqliteStorage`.
    """

    async def _do(self, verb: str, work: Work[T]) -> T:
        kind = VERBS[verb]
        request = self.engine().writer.ask(
            work, self.clock, is_durable=kind.is_durable, grows=kind.grows
        )
        await sent()
        return request.wait()

    def engine(self) -> Engine:
        """Return the engine; it is given up when the process ends, if nobody does before."""
        _open.add(self)
        return super().engine()

    def open_inbox(self) -> Inbox:
        """Return a new inbox of this process."""
        return SqliteInbox(self.engine(), self.clock)

    @contextmanager
    def in_line(self) -> Iterator[Self]:
        """Return this storage: one thread works on the database, and does all calls in order."""
        yield self

    async def aclose(self) -> None:
        """Leave the engine, which ends with its last user."""
        self.close()

    def close(self) -> None:
        """Do the same."""
        engine = self._leave()
        if engine is not None:
            detach_now(engine)


_open: WeakSet[BlockingSqliteStorage] = WeakSet()


def _close_all() -> None:
    for storage in list(_open):
        storage.close()


# Newer Pythons warn of a connection that ends with the process.
atexit.register(_close_all)

"""The storage on SQLite: its roles over the engine of one database."""

from __future__ import annotations

import time
from copy import copy
from typing import Self

from headrace.job import DEFAULT_TENANT, check_name
from headrace.storage.sqlite.engine.engine import Engine, detach
from headrace.storage.sqlite.engine.location import DatabaseLocation, place_of
from headrace.storage.sqlite.engine.step import Clock
from headrace.storage.sqlite.roles.admin import SqliteAdmin
from headrace.storage.sqlite.roles.bulk_writer import SqliteBulkWriter
from headrace.storage.sqlite.roles.consumer import SqliteConsumer
from headrace.storage.sqlite.roles.doctor import SqliteDoctor
from headrace.storage.sqlite.roles.inspector import SqliteInspector
from headrace.storage.sqlite.roles.maintenance import SqliteMaintenance
from headrace.storage.sqlite.roles.producer import SqliteProducer
from headrace.storage.sqlite.roles.scheduler import SqliteScheduler


def wall_clock() -> int:
    """Return this host's time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class SqliteStorage(
    SqliteProducer,
    SqliteConsumer,
    SqliteMaintenance,
    SqliteInspector,
    SqliteAdmin,
    SqliteScheduler,
    SqliteBulkWriter,
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
        engine = self.attached
        self.attached: Engine | None = None
        if engine is not None:
            await detach(engine)

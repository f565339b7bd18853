"""What the roles of one storage stand on: whose queues, and the engine of the database."""

from __future__ import annotations

from typing import TypeVar

from headrace.storage.base import VERBS
from headrace.storage.sqlite.engine.engine import Engine
from headrace.storage.sqlite.engine.engines import attach_user
from headrace.storage.sqlite.engine.location import DatabaseLocation
from headrace.storage.sqlite.engine.request import Work
from headrace.storage.sqlite.engine.step import Clock

T = TypeVar("T")


class SqliteRole:
    """What all roles need.

    Attributes:
        tenant: whose queues.
        place: where the database is.
        clock: tells the time.
        attached: the engine of the place while this storage is a user of it.
    """

    tenant: str
    place: DatabaseLocation
    clock: Clock
    attached: Engine | None = None

    def engine(self) -> Engine:
        """Return the engine; from the first use on, this storage is a user of it."""
        engine = self.attached
        return attach_user(self) if engine is None or engine.is_inherited else engine

    def _name(self, queue: str) -> tuple[str, str]:
        return self.tenant, queue

    async def _do(self, verb: str, work: Work[T]) -> T:
        """Do a verb's work in a transaction of the kind that the verb is."""
        kind = VERBS[verb]
        return await self.engine().writer.run(
            work, self.clock, is_durable=kind.is_durable, grows=kind.grows
        )

"""The role of what keeps a queue in order, on SQLite."""

from __future__ import annotations

from collections.abc import Collection

from headrace.job import ErrorInfo
from headrace.storage.incarnations import Beat
from headrace.storage.sqlite import walk
from headrace.storage.sqlite.roles.role import SqliteRole
from headrace.storage.sqlite.verbs import maintenance
from headrace.storage.values import Repaired


class SqliteMaintenance(SqliteRole):
    """What keeps a queue in order."""

    async def beats(self, queue: str) -> dict[str, Beat]:
        return await self._do("beats", lambda s: maintenance.beats(s, self._name(queue)))

    async def reap(
        self, queue: str, incarnation: str, *, seen: int, error: ErrorInfo
    ) -> int | None:
        return await self._do(
            "reap", lambda s: maintenance.reap(s, self._name(queue), incarnation, seen, error)
        )

    async def forget(self, queue: str, incarnation: str) -> bool:
        return await self._do(
            "forget", lambda s: maintenance.forget(s, self._name(queue), incarnation)
        )

    async def prune(self, queue: str, *, cursor: str = "") -> str:
        return await self._do("prune", lambda s: maintenance.prune(s, self._name(queue)))

    async def repair(
        self,
        queue: str,
        *,
        cursor: str = "",
        lanes: Collection[str] = (),
        is_full: bool = False,
    ) -> Repaired:
        name = self._name(queue)
        # No row is lost but by hand: nothing more to look for at every sweep.
        if is_full or walk.is_at(cursor):
            place = "" if is_full else cursor
            return await self._do("repair", lambda s: maintenance.recount(s, name, place))
        left = await self._do("repair", lambda s: maintenance.open_lines(s, name, cursor))
        return Repaired(left, 0)

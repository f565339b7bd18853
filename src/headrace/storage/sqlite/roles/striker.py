"""The role of what keeps jobs from being run, on SQLite."""

from __future__ import annotations

from headrace.storage.sqlite.roles.role import SqliteRole
from headrace.storage.sqlite.verbs import striker
from headrace.storage.values import StrikeList
from headrace.strike import Strike


class SqliteStriker(SqliteRole):
    """What keeps jobs from being run."""

    async def strike(self, queue: str, strike: Strike) -> None:
        await self._do("strike", lambda s: striker.strike(s, self._name(queue), strike))

    async def lift(self, queue: str, strike_id: str) -> bool:
        return await self._do("lift", lambda s: striker.lift(s, self._name(queue), strike_id))

    async def strikes(self, queue: str) -> StrikeList:
        return await self._do("strikes", lambda s: striker.read_strikes(s, self._name(queue)))

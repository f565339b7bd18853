"""The role of what limits jobs, on SQLite."""

from __future__ import annotations

from headrace.limit import Terms
from headrace.storage.gates import GateInfo, LimitInfo
from headrace.storage.sqlite.roles.role import SqliteRole
from headrace.storage.sqlite.verbs import limiter


class SqliteLimiter(SqliteRole):
    """What limits jobs."""

    async def set_limit(self, queue: str, name: str, terms: Terms | None) -> None:
        await self._do("set_limit", lambda s: limiter.set_limit(s, self._name(queue), name, terms))

    async def limits(self, queue: str) -> list[LimitInfo]:
        return await self._do("limits", lambda s: limiter.limits(s, self._name(queue)))

    async def gate(self, queue: str, name: str, key: str) -> GateInfo:
        return await self._do("gate", lambda s: limiter.gate(s, self._name(queue), name, key))

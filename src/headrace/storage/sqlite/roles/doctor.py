"""The role of what looks after the database, on SQLite."""

from __future__ import annotations

from headrace.storage.sqlite.roles.role import SqliteRole
from headrace.storage.sqlite.verbs.doctor import diagnose, tenants
from headrace.storage.values import Finding


class SqliteDoctor(SqliteRole):
    """Whether the database is well."""

    async def check(self) -> None:
        await self._do("check", lambda _: None)

    async def tenants(self) -> list[str]:
        return await self._do("tenants", tenants)

    async def diagnose(self) -> list[Finding]:
        return await self._do("diagnose", lambda s: diagnose(s, self.place))

    async def tidy(self) -> list[str]:
        return []

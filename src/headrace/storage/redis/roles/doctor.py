"""The role of what looks after the server, on Redis."""

from __future__ import annotations

from headrace.storage.redis.calls import doctor
from headrace.storage.redis.calls.doctor import FIRST_CURSOR
from headrace.storage.redis.damage import damage_findings
from headrace.storage.redis.doctor import remove_libraries, server_findings
from headrace.storage.redis.roles.role import RedisRole
from headrace.storage.values import Finding


class RedisDoctor(RedisRole):
    """Whether the server is well."""

    async def check(self) -> None:
        await self._client.run(doctor.ping())

    async def tenants(self) -> list[str]:
        found: set[str] = set()
        cursor = FIRST_CURSOR
        while True:
            cursor, names = await self._client.run(doctor.tenants(cursor))
            found.update(names)
            if cursor == FIRST_CURSOR:
                return sorted(found)

    async def diagnose(self) -> list[Finding]:
        found = await server_findings(self._client)
        return [*found, *await damage_findings(self._client, self.tenant)]

    async def tidy(self) -> list[str]:
        return await remove_libraries(self._client)

"""The role of what looks after the server, on Redis."""

from __future__ import annotations

from headrace.storage.redis.calls import doctor
from headrace.storage.redis.calls.doctor import FIRST_CURSOR, TENANT_SIGNS, TenantSign
from headrace.storage.redis.damage import damage_findings
from headrace.storage.redis.doctor import remove_libraries, server_findings
from headrace.storage.redis.roles.role import RedisRole
from headrace.storage.values import Finding


class RedisDoctor(RedisRole):
    """Whether the server is well."""

    async def check(self) -> None:
        await self._client.run(doctor.ping())

    async def tenants(self) -> list[str]:
        found = [await self._tenants_by(sign) for sign in TENANT_SIGNS]
        return sorted(set().union(*found))

    async def _tenants_by(self, sign: TenantSign) -> set[str]:
        found: set[str] = set()
        cursor = FIRST_CURSOR
        while True:
            cursor, names = await self._client.run(doctor.tenants(sign, cursor))
            found.update(names)
            if cursor == FIRST_CURSOR:
                return found

    async def diagnose(self) -> list[Finding]:
        found = await server_findings(self._client)
        return [*found, *await damage_findings(self._client, self.tenant)]

    async def tidy(self) -> list[str]:
        return await remove_libraries(self._client)

"""The role of what limits jobs, on Redis."""

from __future__ import annotations

from headrace.limit import Terms
from headrace.storage.gates import GateInfo, LimitInfo
from headrace.storage.redis.calls import limiter
from headrace.storage.redis.roles.role import RedisRole


class RedisLimiter(RedisRole):
    """What limits jobs."""

    async def set_limit(self, queue: str, name: str, terms: Terms | None) -> None:
        await self._introduce_if_room(queue)
        await self._client.run(limiter.set_limit(self._root(queue), name, terms))

    async def limits(self, queue: str) -> list[LimitInfo]:
        return await self._client.run(limiter.limits(self._root(queue)))

    async def gate(self, queue: str, name: str, key: str) -> GateInfo:
        return await self._client.run(limiter.gate(self._root(queue), name, key))

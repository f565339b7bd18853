"""The role of what keeps jobs from being run, on Redis."""

from __future__ import annotations

from headrace.storage.redis.calls import striker
from headrace.storage.redis.roles.role import RedisRole
from headrace.storage.values import StrikeList
from headrace.strike import Strike


class RedisStriker(RedisRole):
    """What keeps jobs from being run."""

    async def strike(self, queue: str, strike: Strike) -> None:
        await self._introduce_if_room(queue)
        await self._client.run(striker.strike(self._root(queue), strike))

    async def lift(self, queue: str, strike_id: str) -> bool:
        return await self._client.run(striker.lift(self._root(queue), strike_id))

    async def strikes(self, queue: str) -> StrikeList:
        return await self._client.run(striker.strikes(self._root(queue)))

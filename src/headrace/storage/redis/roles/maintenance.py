"""The role of what keeps a queue in order, on Redis."""

from __future__ import annotations

from collections.abc import Collection

from headrace.job import ErrorInfo
from headrace.storage.incarnations import Beat
from headrace.storage.redis.calls import maintenance
from headrace.storage.redis.lost import restore_lost
from headrace.storage.redis.roles.role import RedisRole
from headrace.storage.values import Repaired


class RedisMaintenance(RedisRole):
    """What keeps a queue in order."""

    async def beats(self, queue: str) -> dict[str, Beat]:
        return await self._client.run(maintenance.beats(self._root(queue)))

    async def reap(
        self, queue: str, incarnation: str, *, seen: int, error: ErrorInfo
    ) -> int | None:
        return await self._client.run(maintenance.reap(self._root(queue), incarnation, seen, error))

    async def forget(self, queue: str, incarnation: str) -> bool:
        return await self._client.run(maintenance.forget(self._root(queue), incarnation))

    async def prune(self, queue: str, *, cursor: str = "") -> str:
        return await self._client.run(maintenance.prune(self._root(queue), cursor))

    async def repair(
        self,
        queue: str,
        *,
        cursor: str = "",
        lanes: Collection[str] = (),
        is_full: bool = False,
    ) -> Repaired:
        await self._introduce_if_room(queue)
        root = self._root(queue)
        restored = 0
        if is_full:
            restored = await restore_lost(self._client, root)
            cursor = maintenance.WHOLE_WALK
        done = await self._client.run(maintenance.repair(root, cursor, lanes))
        return Repaired(done.cursor, done.mended + restored)

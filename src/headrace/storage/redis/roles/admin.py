"""The role of what operators steer, on Redis."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.job import JobState
from headrace.storage.redis.calls import admin
from headrace.storage.redis.roles.role import RedisRole
from headrace.storage.values import QueueSettings


class RedisAdmin(RedisRole):
    """What operators steer."""

    async def pause(self, queue: str) -> None:
        await self._client.run(admin.pause(self._root(queue)))

    async def resume(self, queue: str) -> None:
        await self._client.run(admin.resume(self._root(queue)))

    async def configure(self, queue: str, settings: QueueSettings) -> None:
        await self._client.run(admin.configure(self._root(queue), settings))

    async def redrive(self, queue: str, job_ids: Sequence[str]) -> int:
        return await self._client.run(admin.redrive(self._root(queue), job_ids))

    async def purge(self, queue: str, state: JobState, job_ids: Sequence[str]) -> int:
        return await self._client.run(admin.purge(self._root(queue), state, job_ids))

"""The role of what writes many jobs, all or none, on Redis."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.request import JobRequest
from headrace.storage.redis.calls import bulk_writer
from headrace.storage.redis.roles.role import RedisRole
from headrace.storage.values import CommitOutcome, StageInfo, WriteInfo


class RedisBulkWriter(RedisRole):
    """What writes many jobs, all or none."""

    async def stage(
        self,
        queue: str,
        write_id: str,
        token: str,
        jobs: Sequence[JobRequest],
        *,
        before: int,
        ttl_ms: int,
    ) -> int:
        root = self._root(queue)
        if not self.shared.is_introduced(root):
            await self._introduce(queue)
        call = bulk_writer.stage(root, write_id, token, jobs, before=before, ttl_ms=ttl_ms)
        return await self._client.run(call)

    async def commit(
        self,
        queue: str,
        write_id: str,
        stages: Sequence[StageInfo],
        *,
        batch: int = 0,
        keep_ms: int,
    ) -> CommitOutcome:
        await self._introduce_if_room(queue)
        call = bulk_writer.commit(self._root(queue), write_id, stages, batch, keep_ms)
        return await self._client.run(call)

    async def publish(self, queue: str) -> int:
        return await self._client.run(bulk_writer.publish(self._root(queue)))

    async def discard(self, queue: str, write_id: str, tokens: Sequence[str]) -> int:
        return await self._client.run(bulk_writer.discard(self._root(queue), write_id, tokens))

    async def read_write(self, queue: str, write_id: str) -> WriteInfo | None:
        return await self._client.run(bulk_writer.read_write(self._root(queue), write_id))

"""The role of what operators steer, on Redis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from headrace.job import JobState
from headrace.storage.queues import SettingChanges
from headrace.storage.redis.calls import admin
from headrace.storage.redis.roles.role import RedisRole


class RedisAdmin(RedisRole):
    """What operators steer."""

    async def pause(self, queue: str) -> None:
        await self._introduce_if_room(queue)
        await self._client.run(admin.pause(self._root(queue)))

    async def resume(self, queue: str) -> None:
        await self._client.run(admin.resume(self._root(queue)))

    async def configure(self, queue: str, **changes: Unpack[SettingChanges]) -> None:
        await self._client.run(admin.configure(self._root(queue), **changes))

    async def acknowledge(
        self, queue: str, reader: str, stream_id: str, *, number: int = 0
    ) -> None:
        call = admin.acknowledge(self._root(queue), reader, stream_id, number)
        await self._introduce_if_room(queue)
        await self._client.run(call)

    async def forget_reader(self, queue: str, reader: str) -> bool:
        return await self._client.run(admin.forget_reader(self._root(queue), reader))

    async def delete_queue(self, queue: str, *, is_forced: bool = False) -> int | None:
        root = self._root(queue)
        deleted = await self._client.run(admin.delete_queue(root, is_forced=is_forced))
        if deleted.left == 0:
            self.shared.forget(root)
            await self._client.run(admin.strike(self.tenant, queue))
            # Somebody may have used it between the two, and found its name on the list.
            again = await self._client.run(admin.delete_queue(root, is_forced=is_forced))
            if again.left is None:
                await self._introduce(queue)
                return None
            if deleted.has_gates:
                await self._forget_gates(root)
        return deleted.left

    async def _forget_gates(self, root: str) -> None:
        cursor = b""
        while cursor != b"0":
            cursor, found = await self._client.run(admin.gates_of(root, cursor or b"0"))
            if found:
                await self._client.run(admin.forget_gates(root, found))

    async def redrive(self, queue: str, job_ids: Sequence[str]) -> int:
        return await self._client.run(admin.redrive(self._root(queue), job_ids))

    async def purge(self, queue: str, state: JobState, job_ids: Sequence[str]) -> int:
        return await self._client.run(admin.purge(self._root(queue), state, job_ids))

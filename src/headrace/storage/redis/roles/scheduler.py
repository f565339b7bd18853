"""The role of what keeps schedules, and fires their occurrences, on Redis."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.job import EnqueueOutcome
from headrace.storage.limits import SCHEDULES_PAGE_LIMIT
from headrace.storage.redis import keys
from headrace.storage.redis.calls import scheduler
from headrace.storage.redis.roles.role import RedisRole
from headrace.storage.schedules import (
    Occurrence,
    ReleaseStanding,
    SchedulePage,
    ScheduleRead,
    ScheduleWrite,
    TakenSchedules,
)


class RedisScheduler(RedisRole):
    """What keeps schedules, and fires their occurrences."""

    @property
    def _schedules(self) -> str:
        return keys.schedules(self.tenant)

    async def read_schedules(self, ids: Sequence[str]) -> ScheduleRead:
        return await self._client.run(scheduler.read_schedules(self._schedules, ids))

    async def list_schedules(
        self, *, app: str | None = None, cursor: str = "", limit: int = SCHEDULES_PAGE_LIMIT
    ) -> SchedulePage:
        call = scheduler.list_schedules(self._schedules, app, cursor, limit)
        return await self._client.run(call)

    async def schedule_history(self, schedule_id: str) -> list[bytes]:
        return await self._client.run(scheduler.schedule_history(self._schedules, schedule_id))

    async def write_schedules(
        self, writes: Sequence[ScheduleWrite], *, wakes: bool
    ) -> list[int | None]:
        call = scheduler.write_schedules(self._schedules, writes, wakes=wakes)
        return await self._client.run(call)

    async def take_schedules(
        self, *, limit: int, hold_ms: int, channel: str = ""
    ) -> TakenSchedules:
        call = scheduler.take_schedules(self._schedules, limit, hold_ms, channel)
        return await self._client.run(call)

    async def fire(
        self, queue: str, occurrences: Sequence[Occurrence], *, until_ms: int
    ) -> list[EnqueueOutcome] | None:
        root = self._root(queue)
        if not self.shared.is_introduced(root):
            await self._introduce(queue)
        return await self._client.run(scheduler.fire(root, occurrences, until_ms))

    async def join_release(self, app: str, digest: str, *, alive_ms: int) -> ReleaseStanding:
        call = scheduler.join_release(self._schedules, app, digest, alive_ms)
        return await self._client.run(call)

    async def leave_release(self, app: str, digest: str) -> None:
        await self._client.run(scheduler.leave_release(self._schedules, app, digest))

"""The role of what keeps schedules and fires their occurrences, on SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.job import EnqueueOutcome
from headrace.storage.limits import SCHEDULES_LIMIT, SCHEDULES_PAGE_LIMIT
from headrace.storage.schedules import (
    Occurrence,
    ReleaseStanding,
    SchedulePage,
    ScheduleRead,
    ScheduleWrite,
    TakenSchedules,
)
from headrace.storage.sqlite.roles.role import SqliteRole
from headrace.storage.sqlite.verbs import fire, releases, schedules


class SqliteScheduler(SqliteRole):
    """What keeps schedules and fires their occurrences.

    Attributes:
        schedules_limit: most schedules of a tenant; another one for tests.
    """

    schedules_limit: int = SCHEDULES_LIMIT

    async def read_schedules(self, ids: Sequence[str]) -> ScheduleRead:
        return await self._do(
            "read_schedules", lambda s: schedules.read_schedules(s, self.tenant, ids)
        )

    async def list_schedules(
        self, *, app: str | None = None, cursor: str = "", limit: int = SCHEDULES_PAGE_LIMIT
    ) -> SchedulePage:
        return await self._do(
            "list_schedules",
            lambda s: schedules.list_schedules(s, self.tenant, app, cursor, limit),
        )

    async def schedule_history(self, schedule_id: str) -> list[bytes]:
        return await self._do(
            "schedule_history", lambda s: schedules.schedule_history(s, self.tenant, schedule_id)
        )

    async def write_schedules(
        self, writes: Sequence[ScheduleWrite], *, wakes: bool
    ) -> list[int | None]:
        limit = self.schedules_limit
        return await self._do(
            "write_schedules",
            lambda s: schedules.write_schedules(s, self.tenant, writes, wakes=wakes, limit=limit),
        )

    async def take_schedules(
        self, *, limit: int, hold_ms: int, channel: str = ""
    ) -> TakenSchedules:
        return await self._do(
            "take_schedules",
            lambda s: schedules.take_schedules(
                s, self.tenant, limit=limit, hold_ms=hold_ms, channel=channel
            ),
        )

    async def fire(
        self, queue: str, occurrences: Sequence[Occurrence], *, until_ms: int
    ) -> list[EnqueueOutcome] | None:
        return await self._do(
            "fire", lambda s: fire.fire(s, self._name(queue), occurrences, until_ms)
        )

    async def join_release(self, app: str, digest: str, *, alive_ms: int) -> ReleaseStanding:
        return await self._do(
            "join_release",
            lambda s: releases.join_release(s, self.tenant, app, digest, alive_ms=alive_ms),
        )

    async def leave_release(self, app: str, digest: str) -> None:
        await self._do(
            "leave_release", lambda s: releases.leave_release(s, self.tenant, app, digest)
        )

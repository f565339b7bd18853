"""Embedded storages that keep schedules in a way that is wrong, which the machine must find out."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headrace.job import EnqueueOutcome
from headrace.storage.schedules import (
    Occurrence,
    ReleaseStanding,
    ScheduleWrite,
    TakenSchedules,
)
from headrace.storage.sqlite.storage import SqliteStorage

FOREVER_MS = 2**50


class Forgetful(SqliteStorage):
    """Can forget what was fired in a queue."""

    async def _forget(self, queue: str) -> None:
        sql = """
DELETE FROM fired WHERE queue = (SELECT key FROM queues WHERE tenant = ? AND name = ?)
"""
        name = (self.tenant, queue)
        await self._do("fire", lambda step: step.db.execute(sql, name).rowcount)


class ForgetsWhatItFired(Forgetful):
    async def fire(
        self, queue: str, occurrences: Sequence[Occurrence], *, until_ms: int
    ) -> list[EnqueueOutcome] | None:
        outcomes = await super().fire(queue, occurrences, until_ms=until_ms)
        await self._forget(queue)
        return outcomes


class FiresLate(SqliteStorage):
    """Fires for who has stood still too."""

    async def fire(
        self, queue: str, occurrences: Sequence[Occurrence], *, until_ms: int
    ) -> list[EnqueueOutcome] | None:
        return await super().fire(queue, occurrences, until_ms=FOREVER_MS)


class FiresBackwards(SqliteStorage):
    """Of a schedule's occurrences only the newest are fired."""

    async def fire(
        self, queue: str, occurrences: Sequence[Occurrence], *, until_ms: int
    ) -> list[EnqueueOutcome] | None:
        outcomes = await super().fire(queue, occurrences[::-1], until_ms=until_ms)
        return None if outcomes is None else outcomes[::-1]


class ForgetsMarksWithTheirQueue(Forgetful):
    async def delete_queue(self, queue: str, *, is_forced: bool = False) -> int | None:
        left = await super().delete_queue(queue, is_forced=is_forced)
        if left == 0:
            await self._forget(queue)
        return left


class WritesOverAnything(SqliteStorage):
    """Does not look whether a schedule is the one that was expected."""

    async def write_schedules(
        self, writes: Sequence[ScheduleWrite], *, wakes: bool
    ) -> list[int | None]:
        there = (await self.read_schedules([write.id for write in writes])).schedules
        versions = {schedule.id: schedule.version for schedule in there}
        current = [
            msgspec.structs.replace(write, expected=versions.get(write.id, 0)) for write in writes
        ]
        return await super().write_schedules(current, wakes=wakes)


class WakesNoScheduler(SqliteStorage):
    async def write_schedules(
        self, writes: Sequence[ScheduleWrite], *, wakes: bool
    ) -> list[int | None]:
        return await super().write_schedules(writes, wakes=False)


class KeepsAllHistory(SqliteStorage):
    """Does not bound the history of a schedule."""

    async def write_schedules(
        self, writes: Sequence[ScheduleWrite], *, wakes: bool
    ) -> list[int | None]:
        sql = """
CREATE TEMP TRIGGER IF NOT EXISTS keep BEFORE DELETE ON main.schedule_history
WHEN (SELECT count(*) FROM schedule_history WHERE schedule = OLD.schedule) > 100
BEGIN SELECT RAISE(IGNORE); END
"""
        await self._do("write_schedules", lambda step: step.db.execute(sql).rowcount)
        return await super().write_schedules(writes, wakes=wakes)


class TakesWhatIsHeld(SqliteStorage):
    async def take_schedules(
        self, *, limit: int, hold_ms: int, channel: str = ""
    ) -> TakenSchedules:
        sql = "UPDATE schedules SET look_ms = due_ms"
        await self._do("take_schedules", lambda step: step.db.execute(sql).rowcount)
        return await super().take_schedules(limit=limit, hold_ms=hold_ms, channel=channel)


class ForgetsTheOrderOfReleases(SqliteStorage):
    """Whichever release joins is the newest."""

    async def join_release(self, app: str, digest: str, *, alive_ms: int) -> ReleaseStanding:
        sql = "DELETE FROM schedule_releases WHERE app = ? AND digest = ?"
        await self._do("join_release", lambda step: step.db.execute(sql, (app, digest)).rowcount)
        return await super().join_release(app, digest, alive_ms=alive_ms)


SCHEDULE_MUTANTS = (
    ForgetsWhatItFired,
    FiresLate,
    FiresBackwards,
    ForgetsMarksWithTheirQueue,
    WritesOverAnything,
    WakesNoScheduler,
    KeepsAllHistory,
    TakesWhatIsHeld,
    ForgetsTheOrderOfReleases,
)

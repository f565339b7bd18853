"""The role of what operators steer, on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from headrace.job import JobState
from headrace.storage.queues import SettingChanges
from headrace.storage.readers import read_stream_id
from headrace.storage.sqlite.roles.role import SqliteRole
from headrace.storage.sqlite.verbs import readers, steering


class SqliteAdmin(SqliteRole):
    """What operators steer."""

    async def pause(self, queue: str) -> None:
        await self._do("pause", lambda s: steering.pause(s, self._name(queue)))

    async def resume(self, queue: str) -> None:
        await self._do("resume", lambda s: steering.resume(s, self._name(queue)))

    async def configure(self, queue: str, **changes: Unpack[SettingChanges]) -> None:
        await self._do("configure", lambda s: steering.configure(s, self._name(queue), **changes))

    async def acknowledge(
        self, queue: str, reader: str, stream_id: str, *, number: int = 0
    ) -> None:
        entry = read_stream_id(stream_id)[1]
        await self._do(
            "acknowledge",
            lambda s: readers.acknowledge(s, self._name(queue), reader, entry, number),
        )

    async def forget_reader(self, queue: str, reader: str) -> bool:
        return await self._do(
            "forget_reader", lambda s: readers.forget_reader(s, self._name(queue), reader)
        )

    async def delete_queue(self, queue: str, *, is_forced: bool = False) -> int | None:
        return await self._do(
            "delete_queue",
            lambda s: steering.delete_queue(s, self._name(queue), is_forced=is_forced),
        )

    async def redrive(self, queue: str, job_ids: Sequence[str]) -> int:
        return await self._do("redrive", lambda s: steering.redrive(s, self._name(queue), job_ids))

    async def purge(self, queue: str, state: JobState, job_ids: Sequence[str]) -> int:
        return await self._do(
            "purge", lambda s: steering.purge(s, self._name(queue), state, job_ids)
        )

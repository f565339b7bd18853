"""The role of what operators see, on Redis."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.job import JobRecord, JobState
from headrace.storage.exports import ExportPage
from headrace.storage.incarnations import IncarnationInfo
from headrace.storage.limits import EXPORT_PAGE_LIMIT, OUTPUT_PAGE_LIMIT
from headrace.storage.queues import QueueCounts
from headrace.storage.readers import ReaderInfo
from headrace.storage.redis.calls import inspector, reading
from headrace.storage.redis.calls.why import why
from headrace.storage.redis.roles.role import RedisRole
from headrace.storage.situation import Situation
from headrace.storage.values import End, EventPage, OutputPage, Page


class RedisInspector(RedisRole):
    """What operators see."""

    async def queues(self) -> list[str]:
        return await self._client.run(inspector.queues(self.tenant))

    async def get(self, queue: str, job_id: str) -> JobRecord | None:
        return await self._client.run(reading.get(self._root(queue), job_id))

    async def why(self, queue: str, job_id: str) -> Situation | None:
        return await self._client.run(why(self._root(queue), job_id))

    async def outcomes(self, queue: str, job_ids: Sequence[str]) -> list[End]:
        return await self._client.run(reading.outcomes(self._root(queue), job_ids))

    async def export(
        self,
        queue: str,
        state: JobState,
        *,
        cursor: str = "",
        limit: int = EXPORT_PAGE_LIMIT,
    ) -> ExportPage:
        return await self._client.run(reading.export(self._root(queue), state, cursor, limit))

    async def output(
        self, queue: str, job_id: str, *, after: str = "", limit: int = OUTPUT_PAGE_LIMIT
    ) -> OutputPage:
        return await self._client.run(inspector.output(self._root(queue), job_id, after, limit))

    async def list_jobs(
        self, queue: str, state: JobState, *, cursor: str = "", limit: int = 50
    ) -> Page:
        return await self._client.run(inspector.list_jobs(self._root(queue), state, cursor, limit))

    async def stats(self, queue: str) -> QueueCounts:
        return await self._client.run(inspector.stats(self._root(queue)))

    async def workers(self, queue: str) -> list[IncarnationInfo]:
        return await self._client.run(inspector.workers(self._root(queue)))

    async def readers(self, queue: str) -> list[ReaderInfo]:
        return await self._client.run(inspector.readers(self._root(queue)))

    async def events(self, queue: str, *, after: str = "0", limit: int = 100) -> EventPage:
        return await self._client.run(inspector.events(self._root(queue), after, limit))

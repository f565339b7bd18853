"""The role of what operators see, on SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.job import JobRecord, JobState
from headrace.storage.exports import ExportPage
from headrace.storage.incarnations import IncarnationInfo
from headrace.storage.limits import EXPORT_PAGE_LIMIT, OUTPUT_PAGE_LIMIT
from headrace.storage.queues import QueueCounts
from headrace.storage.readers import ReaderInfo, read_stream_id
from headrace.storage.situation import Situation
from headrace.storage.sqlite.roles.role import SqliteRole
from headrace.storage.sqlite.verbs import inspector, listing, output, readers, reading
from headrace.storage.sqlite.verbs.why import why
from headrace.storage.values import End, EventPage, OutputPage, Page, read_output_cursor


class SqliteInspector(SqliteRole):
    """What operators see."""

    async def queues(self) -> list[str]:
        return await self._do("queues", lambda s: inspector.queues(s, self.tenant))

    async def get(self, queue: str, job_id: str) -> JobRecord | None:
        return await self._do("get", lambda s: reading.get(s, self._name(queue), job_id))

    async def why(self, queue: str, job_id: str) -> Situation | None:
        return await self._do("why", lambda s: why(s, self._name(queue), job_id))

    async def outcomes(self, queue: str, job_ids: Sequence[str]) -> list[End]:
        name, ids = self._name(queue), list(job_ids)
        return await self._do("outcomes", lambda s: reading.outcomes(s, name, ids))

    async def export(
        self,
        queue: str,
        state: JobState,
        *,
        cursor: str = "",
        limit: int = EXPORT_PAGE_LIMIT,
    ) -> ExportPage:
        name, after = self._name(queue), reading.read_cursor(queue, state, cursor)
        most = min(limit, EXPORT_PAGE_LIMIT)
        return await self._do("export", lambda s: reading.export(s, name, state, after, most))

    async def output(
        self, queue: str, job_id: str, *, after: str = "", limit: int = OUTPUT_PAGE_LIMIT
    ) -> OutputPage:
        name, seen = self._name(queue), read_output_cursor(after)
        return await self._do("output", lambda s: output.read(s, name, job_id, seen, limit))

    async def list_jobs(
        self, queue: str, state: JobState, *, cursor: str = "", limit: int = 50
    ) -> Page:
        after = listing.read_cursor(state, cursor)
        return await self._do(
            "list_jobs", lambda s: listing.list_jobs(s, self._name(queue), state, after, limit)
        )

    async def stats(self, queue: str) -> QueueCounts:
        return await self._do("stats", lambda s: inspector.stats(s, self._name(queue)))

    async def workers(self, queue: str) -> list[IncarnationInfo]:
        return await self._do("workers", lambda s: inspector.workers(s, self._name(queue)))

    async def readers(self, queue: str) -> list[ReaderInfo]:
        return await self._do("readers", lambda s: readers.readers(s, self._name(queue)))

    async def events(self, queue: str, *, after: str = "0", limit: int = 100) -> EventPage:
        seen = read_stream_id(after)[1]
        return await self._do(
            "events", lambda s: inspector.events(s, self._name(queue), seen, limit)
        )

"""The role of what reads very many events, on SQLite."""

from __future__ import annotations

from headrace.storage.event_pages import EventLines, EventPlace, EventSpan
from headrace.storage.limits import EVENT_LINES_LIMIT
from headrace.storage.readers import read_stream_id
from headrace.storage.sqlite.events import LAST_ENTRY
from headrace.storage.sqlite.roles.role import SqliteRole
from headrace.storage.sqlite.verbs import bulk_reader


class SqliteBulkReader(SqliteRole):
    """What reads very many events."""

    async def event_lines(
        self, queue: str, *, after: str = "0", until: str = "", limit: int = 100
    ) -> list[EventLines]:
        name, seen = self._name(queue), read_stream_id(after)[1]
        last = read_stream_id(until)[1] if until else LAST_ENTRY
        most = min(limit, EVENT_LINES_LIMIT)
        return await self._do(
            "event_lines", lambda s: bulk_reader.event_lines(s, name, seen, last, most)
        )

    async def event_span(self, queue: str) -> EventSpan:
        return await self._do("event_span", lambda s: bulk_reader.event_span(s, self._name(queue)))

    async def event_place(self, queue: str, at_ms: int) -> EventPlace | None:
        name = self._name(queue)
        return await self._do("event_place", lambda s: bulk_reader.event_place(s, name, at_ms))

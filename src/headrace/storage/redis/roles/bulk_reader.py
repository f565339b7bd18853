"""The role of what reads very many events, on Redis."""

from __future__ import annotations

from headrace.storage.event_pages import EventLines, EventPlace, EventSpan
from headrace.storage.redis.calls import bulk_reader
from headrace.storage.redis.roles.role import RedisRole


class RedisBulkReader(RedisRole):
    """What reads very many events."""

    async def event_lines(
        self, queue: str, *, after: str = "0", until: str = "", limit: int = 100
    ) -> list[EventLines]:
        call = bulk_reader.event_lines(self._root(queue), after, until, limit)
        return await self._client.run(call)

    async def event_span(self, queue: str) -> EventSpan:
        return await self._client.run(bulk_reader.event_span(self._root(queue)))

    async def event_place(self, queue: str, at_ms: int) -> EventPlace | None:
        return await self._client.run(bulk_reader.event_place(self._root(queue), at_ms))

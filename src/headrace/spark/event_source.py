"""Events of a storage by calls that are repeated while it is away; all of them only read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from headrace.spark.places import Span
from headrace.storage.base import check_reads_in_bulk
from headrace.storage.blocking import BlockingStorage
from headrace.storage.event_pages import EventLines, EventPlace, EventSpan
from headrace.storage.limits import EVENT_LINES_LIMIT
from headrace.storage.steps import Ahead, at_once
from headrace.sync.asking import BlockingAsker


class EventSource:
    """What a storage says of events; see `headrace.storage.roles.bulk_reader.BulkReader`.

    Args:
        storage: whose.
        retry_for_s: how long a call is repeated before its error is raised.

    Attributes:
        asker: what repeats the calls.

    Raises:
        StorageRefused: it has no bulk reads.
    """

    def __init__(self, storage: BlockingStorage, *, retry_for_s: float) -> None:
        check_reads_in_bulk(storage)
        self._storage = storage
        self.asker: BlockingAsker = BlockingAsker(storage, retry_for_s=retry_for_s)

    async def queues(self) -> list[str]:
        """Return the queues of the tenant."""
        return await self.asker.ask(self._storage.queues)

    async def event_span(self, queue: str) -> EventSpan:
        """Return where the events of a queue begin and end."""
        return await self.asker.ask(partial(self._storage.event_span, queue))

    async def event_place(self, queue: str, at_ms: int) -> EventPlace | None:
        """Return the last entry that is no later than an instant."""
        return await self.asker.ask(partial(self._storage.event_place, queue, at_ms))

    async def event_lines(
        self, queue: str, *, after: str = "0", until: str = "", limit: int = 100
    ) -> list[EventLines]:
        """Return entries of events as they are kept."""
        return await self.asker.ask(
            partial(self._storage.event_lines, queue, after=after, until=until, limit=limit)
        )

    def pages(self, span: Span) -> Iterator[list[EventLines]]:
        """Yield the entries of a span; the storage reads on while its caller is busy with some."""
        with self._storage.in_line() as line:
            call: _PageCall | None = _PageCall(line, span, span.start.id)
            while call is not None:
                page = at_once(self.asker.ask(call.answer))
                is_full = len(page) >= EVENT_LINES_LIMIT
                call = _PageCall(line, span, page[-1].stream_id) if is_full else None
                if page:
                    yield page


class _PageCall:
    """A call for the entries behind a place, which is sent before its answer is asked for."""

    def __init__(self, storage: BlockingStorage, span: Span, after: str) -> None:
        self._steps = partial(
            storage.event_lines, span.queue, after=after, until=span.end.id, limit=EVENT_LINES_LIMIT
        )
        self._ahead: Ahead[list[EventLines]] | None = Ahead(self._steps())

    async def answer(self) -> list[EventLines]:
        """Return the answer to it; later make the call anew each time."""
        ahead, self._ahead = self._ahead, None
        return await self._steps() if ahead is None else ahead.result()

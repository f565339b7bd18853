"""What happened in a queue, and the named readers for whom it is kept."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from headrace.errors import InvalidOption
from headrace.job import check_name
from headrace.plain import plain_text, shown
from headrace.storage.base import Admin, Inspector, Limiter, Producer, Striker
from headrace.storage.limits import BATCH_LIMIT
from headrace.storage.readers import FIRST
from headrace.views.jobs import JobEvent
from headrace.views.queues import QueueReader

_STREAM_ID = re.compile(r"[0-9]{1,19}(-[0-9]{1,19})?\Z")


class Operator(Producer, Inspector, Admin, Limiter, Striker, Protocol):
    """What a queue is looked at and steered through."""


class QueueEvents:
    """The events of a queue, and their readers: a part of `Queue`.

    Args:
        name: the queue's.
        storage: returns what it is looked at and steered through.

    Raises:
        InvalidOption: the name is not valid.
    """

    def __init__(self, name: str, storage: Callable[[], Operator]) -> None:
        self.name: str = check_name(name, what="queue")
        self._storage = storage

    async def events(
        self, *, after: str | None = None, reader: str | None = None
    ) -> AsyncIterator[JobEvent]:
        """Yield the kept events, oldest first, up to now.

        Each has a number, one higher than that of the event before it. A higher one says how many
        were trimmed before they were read; a lower one, that the storage lost its data, or the
        queue was deleted, and numbers began anew.

        Args:
            after: read on behind the entry of this stream id; those of an entry share one.
            reader: read on behind what this reader has acknowledged; from the first that is kept
                where there is no such reader.

        Raises:
            InvalidOption: ``after`` is no stream id, ``reader`` is no name, or both are said.
        """
        if after is not None and reader is not None:
            raise InvalidOption("say where to read on: after=... or reader=..., one of them")
        last_id, seen = FIRST, 0
        if after is not None:
            last_id = _check_stream_id(after, what="after")
        elif reader is not None:
            last_id, seen = await self._place(check_name(reader, what="reader"))
        while True:
            page = await self._storage().events(self.name, after=last_id, limit=BATCH_LIMIT)
            for event in page.events:
                # Of the entry in which a reader stopped, it has acknowledged the first ones.
                if not 0 < event.number <= seen:
                    seen = 0
                    yield JobEvent.of(self.name, event)
            if not page.last_id:
                return
            last_id = page.last_id

    async def acknowledge(self, reader: str, seen: JobEvent | str) -> None:
        """Say that a reader has seen the events up to one, and that it lives.

        The first time makes the reader. From then on the events that it has not acknowledged are
        kept, up to ``events_cap`` entries (`configure`). An earlier event than before changes
        nothing, and a reader that is silent for 7 days is dropped.

        Args:
            reader: its name, one for each pipeline: as that of a queue.
            seen: the last event that is done with; or a stream id, for all events of that entry:
                ``"0"`` for a reader that has seen nothing.

        Raises:
            InvalidOption: that is no name, no stream id, or an event of another queue.
            TooManyReaders: the queue has 100 readers.
        """
        name = check_name(reader, what="reader")
        number = 0
        if isinstance(seen, JobEvent):
            if seen.queue != self.name:
                raise InvalidOption(
                    f"the event is of queue {seen.queue!r}, not of {self.name!r}: acknowledge it "
                    "there"
                )
            number = seen.number
            seen = seen.stream_id
        stream_id = _check_stream_id(seen, what="seen")
        await self._storage().acknowledge(self.name, name, stream_id, number=number)

    async def readers(self) -> list[QueueReader]:
        """Return the readers of the events by name, and how far each has come."""
        found = await self._storage().readers(self.name)
        return [QueueReader.of(self.name, info) for info in found]

    async def forget_reader(self, reader: str) -> bool:
        """Drop a reader, for which nothing is kept any more; return whether there was one.

        Raises:
            InvalidOption: that is no name.
        """
        return await self._storage().forget_reader(self.name, check_name(reader, what="reader"))

    async def _place(self, reader: str) -> tuple[str, int]:
        for info in await self._storage().readers(self.name):
            if info.name == reader:
                return info.stream_id, info.number
        return FIRST, 0


def _check_stream_id(value: str, *, what: str) -> str:
    stream_id = plain_text(value)
    if stream_id is None or not _STREAM_ID.match(stream_id):
        raise InvalidOption(f"{what}={shown(value)} is no stream id: use the stream_id of an event")
    return stream_id

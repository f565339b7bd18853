"""The model of readers of events: how far each has come. It keeps no events, so it trims none."""

from __future__ import annotations

from headrace.storage.limits import READER_TTL_MS
from headrace.storage.readers import ReaderInfo
from tests.model.places import Reader
from tests.model.state import State

NOTHING = "0"
"""The stream id of who has seen nothing."""
AHEAD = "9" * 18 + "-" + "9" * 18
"""One behind every entry."""


class ReaderModel(State):
    """``acknowledge``, ``forget_reader``, ``readers``; ids of entries are the storage's own."""

    def acknowledge(self, queue: str, reader: str, stream_id: str, *, number: int = 0) -> None:
        """Note how far a reader has come."""
        q = self.queue(queue)
        known = q.readers.setdefault(reader, Reader())
        last = q.entries.get(stream_id, max(q.entries.values(), default=0))
        if stream_id == NOTHING:
            last = 0
        known.number = max(known.number, min(number or last, last))
        known.at = self.now

    def forget_reader(self, queue: str, reader: str) -> bool:
        """Drop a reader."""
        return self.queue(queue).readers.pop(reader, None) is not None

    def readers(self, queue: str) -> list[ReaderInfo]:
        """Return the readers, without the ids of their entries."""
        q = self.queue(queue)
        told = max(q.entries.values(), default=0)
        return [
            ReaderInfo(
                name=name,
                stream_id="",
                number=known.number,
                behind=told - known.number,
                at_ms=known.at,
            )
            for name, known in sorted(q.readers.items())
        ]

    def prune_readers(self, queue: str) -> None:
        """Drop those that have been silent for long."""
        readers = self.queue(queue).readers
        for name in [n for n, r in readers.items() if self.now - r.at >= READER_TTL_MS]:
            del readers[name]

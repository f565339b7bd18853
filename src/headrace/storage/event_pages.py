"""Events as they are kept, for who reads many of them: whole entries, and places among them."""

from __future__ import annotations

import msgspec


class EventPlace(msgspec.Struct, frozen=True):
    """An entry of a queue's events, by the numbers of what is in it.

    Attributes:
        stream_id: of the entry.
        first: the number of its first event; 0 where that is not known.
        last: the number of its last event; 0 where that is not known.
    """

    stream_id: str
    first: int
    last: int


class EventSpan(msgspec.Struct, frozen=True):
    """Where the kept events of a queue begin and end; None: there are none."""

    first: EventPlace | None
    last: EventPlace | None


class EventLines(msgspec.Struct, frozen=True):
    """An entry of a queue's events, as it is kept.

    Attributes:
        stream_id: of the entry; it begins with the milliseconds at which the events happened, and
            a ``-``.
        last: the number of its last event, those before it have the numbers before that; 0: the
            number is not known, and neither are theirs.
        lines: an event a line, as `headrace.storage.lines` says, in UTF-8.
    """

    stream_id: str
    last: int
    lines: bytes

    @property
    def place(self) -> EventPlace:
        """The place of the entry."""
        first = max(0, self.last - self.lines.count(b"\n"))
        return EventPlace(self.stream_id, first, self.last)

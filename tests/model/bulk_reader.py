"""The model of what reads many events. It trims none, and the machine makes too few for that."""

from __future__ import annotations

from headrace.storage.event_pages import EventPlace, EventSpan
from tests.model.state import State


class BulkReaderModel(State):
    """``event_lines``, ``event_span``, ``event_place``; ids of entries are the storage's own."""

    def event_lines(self, queue: str, *, after: str, until: str, limit: int) -> list[EventPlace]:
        """Return the places of the entries that a page has."""
        places = self._places(queue)
        ids = [place.stream_id for place in places]
        first = ids.index(after) + 1 if after in ids else 0
        last = ids.index(until) + 1 if until in ids else len(ids)
        return places[first:last][:limit]

    def event_span(self, queue: str) -> EventSpan:
        """Return the places of the first and of the last entry."""
        places = self._places(queue)
        return EventSpan(places[0], places[-1]) if places else EventSpan(None, None)

    def event_place(self, queue: str, at_ms: int) -> list[EventPlace | None]:
        """Return the places that may be said, more than one where the clock was set back."""
        places = self._places(queue)
        is_later = [False, *(_ms(place) > at_ms for place in places), True]
        return [
            place for n, place in enumerate([None, *places]) if not is_later[n] and is_later[n + 1]
        ]

    def _places(self, queue: str) -> list[EventPlace]:
        entries = self.queue(queue).entries
        before = [0, *entries.values()]
        return [
            EventPlace(stream_id, last_before + 1, last)
            for last_before, (stream_id, last) in zip(before, entries.items(), strict=False)
        ]


def _ms(place: EventPlace) -> int:
    return int(place.stream_id.partition("-")[0])

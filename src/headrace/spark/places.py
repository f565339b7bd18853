"""Places in the events of queues, as Spark keeps them, and what is between two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from headrace.errors import EventsLost, InvalidOption
from headrace.job import check_name
from headrace.plain import shown
from headrace.storage.readers import read_stream_id

_BEFORE_ALL = ("0", "0-0")
_MOST = 10**15
_EXAMPLE = '{"emails": {"id": "1764400000000-0", "n": 1200}}'


class EventOffset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a reader of a queue's events stands: behind an entry. This is also its JSON.

    Attributes:
        id: the ``stream_id`` of the entry; "0": before all that is kept.
        n: the number of the entry's last event; before all, of the last one that is not kept any
            more. 0: there is none, or it is not known.
    """

    id: str = "0"
    n: int = 0

    @property
    def is_before_all(self) -> bool:
        """Whether no entry is before it."""
        return self.id in _BEFORE_ALL

    @property
    def at_ms(self) -> int:
        """When the events of its entry happened; 0 before all."""
        return read_stream_id(self.id)[0]

    @property
    def number(self) -> int | None:
        """The number of the last event before it, None where that is not known."""
        return self.n if self.n or self.is_before_all else None


class Advice(msgspec.Struct, frozen=True):
    """What to do about a loss.

    Attributes:
        trimmed: about events that were trimmed.
        anew: where numbers began anew.
    """

    trimmed: str
    anew: str


READ_ON = Advice(
    "raise the queue's events (headrace queue configure --events), name a reader that holds them "
    "back (Queue.acknowledge), or set failOnDataLoss=false to go on without them",
    "read from other offsets (a stream: with a new checkpoint), or set failOnDataLoss=false to go "
    "on with what there is",
)
"""To who reads by the data source."""


class Loss(msgspec.Struct, frozen=True):
    """Events that a reader has missed.

    Attributes:
        queue: whose.
        after: the number of the last event before them.
        count: how many; 0: not known, since what is kept does not go on from that event.
    """

    queue: str
    after: int
    count: int = 0

    @property
    def is_trimmed(self) -> bool:
        """Whether they were trimmed; else numbers began anew."""
        return self.count > 0

    def __str__(self) -> str:
        """Say what was lost."""
        if self.is_trimmed:
            events = "1 event" if self.count == 1 else f"{self.count} events"
            were = "was" if self.count == 1 else "were"
            return (
                f"{events} of queue {self.queue!r} after number {self.after} {were} trimmed before "
                "they were read"
            )
        return (
            f"the events of queue {self.queue!r} do not go on behind number {self.after}: numbers "
            "began anew, since the storage was emptied or set back, or the queue deleted; or that "
            "offset was never one"
        )

    def error(self, advice: Advice = READ_ON) -> EventsLost:
        """Return what to raise: it also says what to do."""
        return EventsLost(f"{self}: {advice.trimmed if self.is_trimmed else advice.anew}")


class Span(msgspec.Struct, frozen=True):
    """The events of a queue between two places: behind ``start``, up to ``end`` and with it.

    Attributes:
        queue: the queue.
        start: behind which place it begins; where some were lost, behind those.
        end: where it ends.
        loss: what was lost before ``start``, None for nothing.
    """

    queue: str
    start: EventOffset
    end: EventOffset
    loss: Loss | None = None

    @property
    def events(self) -> int:
        """How many they are by their numbers."""
        return max(0, self.end.n - self.start.n)

    @property
    def is_empty(self) -> bool:
        """Whether nothing can be there."""
        is_behind = 0 < self.end.n <= self.start.n
        return is_behind or self.end.is_before_all or self.end.id == self.start.id


def read_offsets(text: str, *, name: str) -> dict[str, EventOffset]:
    """Return the places that the JSON of an option says, by queues.

    Raises:
        InvalidOption: it is no JSON of offsets.
    """
    try:
        return _checked(msgspec.json.decode(text, type=dict[str, EventOffset]))
    except (msgspec.MsgspecError, InvalidOption) as error:
        raise InvalidOption(
            f"{name}={shown(text)} is not valid: {error}: use offsets such as {_EXAMPLE}"
        ) from None


def from_json(offsets: Mapping[str, Any]) -> dict[str, EventOffset]:
    """Return the places of an offset of Spark's.

    Raises:
        InvalidOption: the checkpoint is another query's.
    """
    try:
        return msgspec.convert(dict(offsets), dict[str, EventOffset])
    except msgspec.ValidationError as error:
        raise InvalidOption(
            f"the checkpoint has the offset {shown(offsets)}, which is none of events ({error}): "
            "use a checkpointLocation of this query's own"
        ) from None


def to_json(places: Mapping[str, EventOffset]) -> dict[str, Any]:
    """Return places as an offset of Spark's, which it keeps and compares as JSON."""
    offsets: dict[str, Any] = msgspec.to_builtins(dict(sorted(places.items())))
    return offsets


def _checked(places: dict[str, EventOffset]) -> dict[str, EventOffset]:
    for queue, place in places.items():
        check_name(queue, what="queue")
        read_stream_id(place.id)
        if not 0 <= place.n <= _MOST:
            raise InvalidOption(f"n={place.n} is out of bounds: use 0 to {_MOST:,}")
    return places

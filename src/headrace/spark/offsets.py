"""Where in the events of queues to read, and what is there: found by number and by time.

All of it is for the driver. Every look is a bounded call, and no event is read to plan a read.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from headrace.errors import InvalidOption
from headrace.logs.log import write_line
from headrace.plain import shown
from headrace.spark.options import ReadOptions
from headrace.spark.places import EventOffset, Loss, Span, read_offsets
from headrace.storage.event_pages import EventLines, EventPlace, EventSpan
from headrace.storage.roles.bulk_reader import BulkReader
from headrace.storage.steps import at_once

LEAST_EVENTS = 1_000
"""A part of a span has at least so many, if Spark's tasks are to be worth their start."""


class HasEvents(BulkReader, Protocol):
    """A storage that blocks, as far as places in events are looked for."""

    async def queues(self) -> list[str]:
        """Return the queues of the tenant."""


def queues_of(storage: HasEvents, options: ReadOptions) -> list[str]:
    """Return the queues that are to be read."""
    return list(options.queues) or at_once(storage.queues())


def earliest(storage: HasEvents, queue: str) -> EventOffset:
    """Return the place before all events that are kept of a queue."""
    first = at_once(storage.event_span(queue)).first
    return EventOffset() if first is None else EventOffset(n=max(0, first.first - 1))


def latest(storage: HasEvents, queue: str) -> EventOffset:
    """Return the place behind the last event of a queue."""
    return _behind(at_once(storage.event_span(queue)).last)


def before(storage: HasEvents, queue: str, at_ms: int) -> EventOffset:
    """Return the place before the first kept event that is not before an instant."""
    found = at_once(storage.event_place(queue, at_ms - 1))
    return earliest(storage, queue) if found is None else _behind(found)


def starts(
    storage: HasEvents, options: ReadOptions, *, otherwise: str = "earliest"
) -> dict[str, EventOffset]:
    """Return where a read begins, as its options say.

    Args:
        storage: where it reads.
        options: those of the read. A queue that its offsets do not have is read from the first of
            its events.
        otherwise: ``earliest`` or ``latest``, where they say nothing.

    Raises:
        InvalidOption: the offsets can't be read, or have a queue that is not to be read.
    """
    queues = queues_of(storage, options)
    if options.starting_ms:
        return {queue: before(storage, queue, options.starting_ms) for queue in queues}
    word = options.starting or otherwise
    if word in _WORDS:
        return {queue: _WORDS[word](storage, queue) for queue in queues}
    said = _said(word, "startingOffsets", queues, options)
    return {queue: earliest(storage, queue) for queue in queues if queue not in said} | said


def ends(storage: HasEvents, options: ReadOptions, queues: Iterable[str]) -> dict[str, EventOffset]:
    """Return where a batch ends, as its options say; a queue that they do not name, with its last.

    Raises:
        InvalidOption: the offsets can't be read, or have a queue that is not to be read.
    """
    if options.ending_ms:
        return {queue: before(storage, queue, options.ending_ms) for queue in queues}
    if options.ending in ("", "latest"):
        return {}
    return _said(options.ending, "endingOffsets", list(queues), options)


def _said(
    text: str, name: str, queues: Sequence[str], options: ReadOptions
) -> dict[str, EventOffset]:
    said = read_offsets(text, name=name)
    strange = sorted(set(said) - set(queues))
    if options.queues and strange:
        raise InvalidOption(
            f"{name} has an offset of queue {shown(strange[0])}, which is not read: name it in the "
            "option queue, or leave its offset out"
        )
    return said


def planned(
    storage: HasEvents,
    starts: Mapping[str, EventOffset],
    *,
    ends: Mapping[str, EventOffset] | None = None,
    most: int = 0,
) -> list[Span]:
    """Return what is to be read of each queue, and what was lost before it.

    Args:
        storage: where it is.
        starts: behind which place each queue is read.
        ends: up to which places; a queue that is not there: up to its last event.
        most: about how many events together, 0: all. Each queue has its share by what waits in it.
            Events of one millisecond stay together, so a span may have more, if they are so many;
            and one that has any has some.
    """
    spans = [
        _span(storage, queue, start, (ends or {}).get(queue)) for queue, start in starts.items()
    ]
    total = sum(span.events for span in spans)
    if not 0 < most < total:
        return spans
    return [_shortened(storage, span, max(1, most * span.events // total)) for span in spans]


def split(storage: HasEvents, spans: Sequence[Span], parts: int) -> list[Span]:
    """Cut spans into parts of about the same number of events.

    Args:
        storage: where they are.
        spans: those to cut; of one that is empty nothing is left.
        parts: about how many there should be, one of each span at least. There are fewer where a
            part would have under `LEAST_EVENTS`, or many are of one millisecond.
    """
    total = max(1, sum(span.events for span in spans))
    return [
        part
        for span in spans
        if not span.is_empty
        for part in _parts(storage, span, -(-parts * span.events // total))
    ]


def raise_or_warn(losses: Iterable[Loss], *, fails: bool) -> None:
    """Raise what was lost, or warn of it and go on.

    Raises:
        EventsLost: ``fails``, and there is a loss.
    """
    for loss in losses:
        if fails:
            raise loss.error()
        log_loss(loss)
        warnings.warn(str(loss), UserWarning, stacklevel=2)


def log_loss(loss: Loss) -> None:
    """Say in the log what was lost."""
    fields = {"queue": loss.queue, "after": loss.after, "count": loss.count}
    write_line(logging.WARNING, "spark.events_lost", **fields)


def _behind(place: EventPlace | None) -> EventOffset:
    return EventOffset() if place is None else EventOffset(place.stream_id, place.last)


def _span(storage: HasEvents, queue: str, start: EventOffset, end: EventOffset | None) -> Span:
    last = latest(storage, queue)
    end = end or last
    if end == start:
        return Span(queue, start, end)
    found, loss = _resumed(storage, queue, start)
    if loss is None:
        return Span(queue, start, end)
    if not loss.is_trimmed:
        # An end behind the last event is of the numbers of before: nothing of them is left.
        return Span(queue, end if end.n > last.n else found, end, loss)
    if found.n <= end.n:
        return Span(queue, found, end, loss)
    return Span(queue, end, end, msgspec.structs.replace(loss, count=end.n - start.n))


def _resumed(storage: HasEvents, queue: str, start: EventOffset) -> tuple[EventOffset, Loss | None]:
    """Return where reading goes on behind a place, and what is missing in between."""
    number = start.number
    if number is None:
        return start, None
    following, kept = _around(storage, queue, start)
    if following:
        first = following[0].place.first
        if first in (0, number + 1):
            return start, None
        is_first_kept = kept.first is not None and kept.first.first > number + 1
        if first > number and is_first_kept:
            return EventOffset(start.id, first - 1), Loss(queue, number, first - 1 - number)
    elif _behind(kept.last).n == number:
        return start, None
    return before(storage, queue, start.at_ms + 1), Loss(queue, number)


def _around(
    storage: HasEvents, queue: str, start: EventOffset
) -> tuple[list[EventLines], EventSpan]:
    """Return the entry behind a place, and then what is kept: in this order, trimming is seen."""
    following = at_once(storage.event_lines(queue, after=start.id, limit=1))
    kept = at_once(storage.event_span(queue))
    if following or _behind(kept.last).n <= start.n:
        return following, kept
    # Either it came in between, or it is not behind that place.
    following = at_once(storage.event_lines(queue, after=start.id, limit=1))
    return following, at_once(storage.event_span(queue))


def _shortened(storage: HasEvents, span: Span, most: int) -> Span:
    if span.events <= most:
        return span
    end = _last_up_to(storage, span, span.start.n + most)
    return msgspec.structs.replace(span, end=end)


def _parts(storage: HasEvents, span: Span, count: int) -> Iterator[Span]:
    count = max(1, min(count, span.events // LEAST_EVENTS))
    rest = span
    for part in range(1, count):
        number = span.start.n + span.events * part // count
        if number > rest.start.n:
            end = _last_up_to(storage, rest, number)
            yield msgspec.structs.replace(rest, end=end)
            rest = msgspec.structs.replace(rest, start=end)
    if not rest.is_empty:
        yield rest


def _last_up_to(storage: HasEvents, span: Span, number: int) -> EventOffset:
    """Return the last place of a span that is no further than a number, by bisecting milliseconds.

    It is behind the span's start: a millisecond that goes beyond the number is taken whole.
    """
    queue, best, over = span.queue, None, span.end
    following = at_once(storage.event_lines(queue, after=span.start.id, limit=1))
    if not following:
        return span.end
    low, high = _behind(following[0].place).at_ms - 1, span.end.at_ms
    while high - low > 1:
        middle = (low + high) // 2
        place = _behind(at_once(storage.event_place(queue, middle)))
        if place.n <= number:
            low, best = middle, place if place.n > span.start.n else best
        else:
            high, over = middle, place if place.n < span.end.n else over
    return best or over


_WORDS: Mapping[str, Callable[[HasEvents, str], EventOffset]] = {
    "earliest": earliest,
    "latest": latest,
}

"""Where in the events of queues a read begins and ends, and what was lost before it."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from headrace import EventsLost, InvalidOption, SyncApp
from headrace.spark import offsets
from headrace.spark.options import ReadOptions
from headrace.spark.places import EventOffset, Loss, Span, to_json
from headrace.storage.event_pages import EventPlace
from headrace.testing.contract.delete_queue import next_millisecond
from tests.spark.support.events import (
    delete,
    enqueue,
    entries,
    first_of,
    last_of,
    storage_at,
    trim,
)

Q = ReadOptions(queues=("q",))


def behind(place: EventPlace) -> EventOffset:
    """Return the place behind an entry."""
    return EventOffset(place.stream_id, place.last)


def ms_of(place: EventPlace) -> int:
    """Return when the events of an entry happened."""
    return behind(place).at_ms


def bursts(app: SyncApp[None], *counts: int) -> None:
    """Make so many events in a millisecond each."""
    for count in counts:
        enqueue(app, count)
        next_millisecond()


def test_a_read_begins_with_the_first_or_behind_the_last_event(
    url: str, app: SyncApp[None]
) -> None:
    storage = storage_at(url)
    assert offsets.starts(storage, Q) == offsets.starts(storage, Q, otherwise="latest")
    assert offsets.starts(storage, Q) == {"q": EventOffset("0", 0)}
    first = trim(app)
    last = behind(last_of(app))
    assert offsets.starts(storage, Q) == {"q": EventOffset("0", first.first - 1)}
    assert offsets.starts(storage, Q, otherwise="latest") == {"q": last}
    said = ReadOptions(queues=("q",), starting="earliest")
    assert offsets.starts(storage, said, otherwise="latest") == offsets.starts(storage, Q)
    assert offsets.starts(storage, ReadOptions(queues=("q",), starting="latest")) == {"q": last}


def test_a_read_begins_and_ends_at_instants(url: str, app: SyncApp[None]) -> None:
    storage = storage_at(url)
    bursts(app, 20, 20, 20)
    first, second, third = (entry.place for entry in entries(app))

    def start(at_ms: int) -> EventOffset:
        options = ReadOptions(queues=("q",), starting_ms=at_ms)
        return offsets.starts(storage, options)["q"]

    def end(at_ms: int) -> EventOffset:
        options = ReadOptions(queues=("q",), ending_ms=at_ms)
        return offsets.ends(storage, options, ["q"])["q"]

    for place in (start, end):
        assert place(ms_of(first)) == EventOffset("0", 0)
        assert place(ms_of(second)) == behind(first)
        assert place(ms_of(second) + 1) == behind(second)
        assert place(ms_of(third) + 1) == behind(third)


def test_offsets_say_where_queues_begin_and_the_others_begin_with_their_first_event(
    url: str, app: SyncApp[None]
) -> None:
    storage = storage_at(url)
    enqueue(app, 40)
    first, last = (entry.place for entry in entries(app))
    text = json.dumps(to_json({"q": behind(first)}))
    end = json.dumps(to_json({"q": behind(last)}))
    options = ReadOptions(queues=("q", "r"), starting=text, ending=end)
    assert offsets.starts(storage, options) == {"q": behind(first), "r": EventOffset()}
    assert offsets.ends(storage, options, ["q", "r"]) == {"q": behind(last)}
    everything = ReadOptions(queues=(), starting=text)
    assert offsets.starts(storage, everything) == {"q": behind(first)}
    assert [span.end for span in offsets.planned(storage, {"q": behind(first)})] == [behind(last)]


def test_an_offset_of_a_queue_that_is_not_read_is_refused(url: str) -> None:
    text = '{"w": {"id": "7-0", "n": 12}}'
    options = ReadOptions(queues=("q",), starting=text)
    with pytest.raises(InvalidOption, match="startingOffsets has an offset of queue 'w', which is"):
        offsets.starts(storage_at(url), options)


@pytest.mark.parametrize("most", [1, 50, 60, 61, 199, 200])
def test_a_limit_ends_with_a_whole_millisecond(url: str, app: SyncApp[None], most: int) -> None:
    bursts(app, 60, 1, 39, 100, 20)
    place, start = EventOffset(), 0
    while start < 220:
        [span] = offsets.planned(storage_at(url), {"q": place}, most=most)
        assert span.start == place
        # Each entry that is the last of its millisecond, and the first of them is always taken.
        found = [entry.place for entry in entries(app) if entry.last > start]
        ends = [
            a
            for a, b in zip(found, [*found[1:], None], strict=True)
            if b is None or ms_of(a) < ms_of(b)
        ]
        within = [end for end in ends if end.last <= start + most]
        assert span.end == behind(within[-1] if within else ends[0])
        place, start = span.end, span.end.n
    assert offsets.planned(storage_at(url), {"q": place}, most=most) == [Span("q", place, place)]


def test_queues_share_a_limit_by_what_waits_in_them(url: str, app: SyncApp[None]) -> None:
    for _ in range(30):
        enqueue(app, 20)
        enqueue(app, 10, queue="r")
        next_millisecond()
    starts = {"q": EventOffset(), "r": EventOffset(), "empty": EventOffset()}
    of_q, of_r, empty = offsets.planned(storage_at(url), starts, most=300)
    assert (of_q.events, of_r.events, empty.is_empty) == (200, 100, True)
    assert [span.end.n for span in offsets.planned(storage_at(url), starts)] == [600, 300, 0]


def test_parts_follow_each_other_and_have_about_as_much(url: str, app: SyncApp[None]) -> None:
    enqueue(app, 9_000)
    enqueue(app, 3_000, queue="r")
    storage = storage_at(url)
    spans = offsets.planned(
        storage, {"q": EventOffset(), "r": EventOffset(), "empty": EventOffset()}
    )
    parts = offsets.split(storage, spans, 4)
    of_q = [part for part in parts if part.queue == "q"]
    assert [part.queue for part in parts] == ["q"] * len(of_q) + ["r"]
    assert of_q[0].start == EventOffset()
    assert of_q[-1].end == spans[0].end
    assert all(a.end == b.start for a, b in pairwise(of_q))
    assert len(of_q) > 1
    assert len(offsets.split(storage, spans, 1)) == 2  # one of each queue at least
    # A task of Spark is not started for a handful of events.
    assert len(offsets.split(storage, spans, 10_000)) <= 12


def test_trimmed_events_are_counted_exactly(url: str, app: SyncApp[None]) -> None:
    enqueue(app, 40)
    start = behind(first_of(app))
    first = trim(app)
    lost = first.first - 1 - 20
    [span] = offsets.planned(storage_at(url), {"q": start})
    assert span.loss == Loss("q", 20, lost)
    assert (span.start, span.end) == (EventOffset(start.id, first.first - 1), behind(last_of(app)))
    assert str(span.loss.error()) == (
        f"{lost} events of queue 'q' after number 20 were trimmed before they were read: raise the "
        "queue's events (headrace queue configure --events), name a reader that holds them back "
        "(Queue.acknowledge), or set failOnDataLoss=false to go on without them"
    )


def test_of_a_part_only_what_it_had_is_lost(url: str, app: SyncApp[None]) -> None:
    enqueue(app, 60)
    start, end, _ = (behind(entry.place) for entry in entries(app))
    trim(app)
    [span] = offsets.planned(storage_at(url), {"q": start}, ends={"q": end})
    assert span.loss == Loss("q", 20, 20)
    assert span.is_empty
    assert offsets.planned(storage_at(url), {"q": start}, ends={"q": start}) == [
        Span("q", start, start)
    ]


def test_nothing_is_lost_of_what_was_trimmed_before_the_start(url: str, app: SyncApp[None]) -> None:
    first = trim(app)
    storage = storage_at(url)
    for start in (EventOffset("0", first.first - 1), behind(first), behind(last_of(app))):
        [span] = offsets.planned(storage, {"q": start})
        assert (span.loss, span.start) == (None, start)


@pytest.mark.parametrize("count", [0, 1, 40, 60, 100])
def test_numbers_that_began_anew_are_noticed(url: str, app: SyncApp[None], count: int) -> None:
    enqueue(app, 60)
    start = behind(last_of(app))
    delete(app)
    enqueue(app, count)
    [span] = offsets.planned(storage_at(url), {"q": start})
    assert span.loss == Loss("q", 60)
    assert "do not go on behind number 60: numbers began anew, since" in str(span.loss)
    assert (span.start.n, span.end.n) == (0, count)
    # Where Spark has planned the end before that, nothing of it is left.
    end = EventOffset(start.id, 160)
    [span] = offsets.planned(storage_at(url), {"q": start}, ends={"q": end})
    assert span.loss == Loss("q", 60)
    assert span.is_empty


def test_a_loss_fails_or_is_warned_of() -> None:
    trimmed, anew = Loss("q", 7, 1), Loss("r", 9)
    offsets.raise_or_warn([], fails=True)
    with pytest.raises(EventsLost, match="1 event of queue 'q' after number 7 was trimmed"):
        offsets.raise_or_warn([trimmed, anew], fails=True)
    with pytest.warns(UserWarning, match="of queue '[qr]'") as warned:
        offsets.raise_or_warn([trimmed, anew], fails=False)
    assert [str(warning.message) for warning in warned] == [str(trimmed), str(anew)]
    assert "failOnDataLoss" not in str(trimmed) + str(anew)


def test_places_whose_numbers_are_not_known_are_believed(url: str, app: SyncApp[None]) -> None:
    enqueue(app, 40)
    start = EventOffset(first_of(app).stream_id, 0)
    [span] = offsets.planned(storage_at(url), {"q": start})
    assert span == Span("q", start, behind(last_of(app)))

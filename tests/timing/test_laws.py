"""What holds for every cron expression, in every zone and at any instant."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace import Cron, InvalidOption
from headrace.timing import Timing
from headrace.timing.cron import _next_s

ZONES = [
    "UTC",
    "Africa/Casablanca",  # four changes a year, around Ramadan
    "America/New_York",
    "America/Santiago",
    "Antarctica/Vostok",  # seven hours back in 1994
    "Australia/Lord_Howe",
    "Europe/Dublin",
    "Pacific/Apia",  # a day was left out in 2011
    "Pacific/Chatham",
    "Pacific/Kwajalein",  # and here in 1993
]
CHANGES = [
    "1993-08-21T12:00Z",
    "1994-01-31T17:00Z",
    "2011-12-30T10:00Z",
    "2026-02-15T02:00Z",
    "2026-03-08T07:00Z",
    "2026-03-29T01:00Z",
    "2026-04-04T14:00Z",
    "2026-09-06T04:00Z",
    "2026-09-26T14:00Z",
    "2026-11-01T06:00Z",
]
MINUTES = ["*", "*/20", "0", "30", "5,45", "59"]
HOURS = ["*", "*/2", "*/5", "0", "1-3", "2", "23,0"]
DAYS = ["*", "L", "13", "*/2"]
WEEKDAYS = ["*", "1", "sun,sat", "5L", "*/3"]

CRONS = st.builds(
    lambda texts, tz, dst: Cron(" ".join(texts), tz=tz, dst=dst),
    st.tuples(*map(st.sampled_from, (MINUTES, HOURS, DAYS, ["*"], WEEKDAYS))),
    st.sampled_from(ZONES),
    st.sampled_from(["shift", "skip"]),
)
INSTANTS = st.builds(
    lambda change, off_ms: int(datetime.fromisoformat(change).timestamp() * 1000) + off_ms,
    st.sampled_from(CHANGES),
    st.integers(-90_000_000, 90_000_000),
)


@settings(max_examples=300)
@given(CRONS, INSTANTS)
def test_the_next_is_later_and_the_same_from_all_that_lies_before(
    cron: Cron, after_ms: int
) -> None:
    found = cron.after(after_ms)
    assert found is not None
    assert found > after_ms
    assert cron.after(found - 1) == found
    assert cron.after((after_ms + found) // 2) == found
    assert cron.after(0, start_ms=after_ms + 1) == found


@settings(max_examples=200)
@given(CRONS, INSTANTS, st.integers(0, 200_000_000), st.integers(0, 40))
def test_the_newest_are_the_last_that_the_next_ones_come_to(
    cron: Cron, after_ms: int, span_ms: int, limit: int
) -> None:
    found: list[int] = []
    instant_ms = cron.after(after_ms)
    while instant_ms is not None and instant_ms <= after_ms + span_ms:
        assert not found or instant_ms > found[-1]
        found.append(instant_ms)
        instant_ms = cron.after(instant_ms)
    assert cron.newest(after_ms, after_ms + span_ms, limit) == (found[-limit:] if limit else [])


@given(CRONS, INSTANTS)
def test_what_is_stored_is_due_when_it_was(cron: Cron, after_ms: int) -> None:
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(cron), type=Timing)
    assert again == cron
    assert again.after(after_ms) == cron.after(after_ms)
    assert again.words() == cron.words()
    assert again.words().isprintable()


@settings(max_examples=500)
@given(
    text=st.text() | st.text("*/-,?#LWHR@0123 57abcdefjmnoprstuwy\t", max_size=40),
    seconds=st.booleans(),
)
@example(text="0-7 * * * *", seconds=False)
@example(text="0 0 * * 0-7", seconds=False)
@example(text="0 0 * * 7", seconds=False)
@example(text="1-1/1 * * * *", seconds=False)
@example(text="İ * * * *", seconds=False)  # in lower case it is two characters
def test_any_text_is_read_or_refused(*, text: str, seconds: bool) -> None:
    try:
        cron = Cron(text, seconds=seconds)
    except InvalidOption:
        return
    assert cron.after(0) is not None
    assert cron.words()


def test_before_1970_there_is_none() -> None:
    daily = Cron("0 * * * *", tz="America/New_York")
    assert daily.newest(-(10**18), 3_600_000, 1000) == [0, 3_600_000]
    assert daily.after(-(10**18)) == 0


def test_a_crowd_of_equal_schedules_is_computed_once() -> None:
    after_ms = int(datetime.now(UTC).timestamp() * 1000)
    before = _next_s.cache_info().misses
    crowd = [Cron("17 4 * * 1", tz="Europe/Berlin") for _ in range(1000)]
    assert len({cron.after(after_ms) for cron in crowd}) == 1
    assert _next_s.cache_info().misses <= before + 1

"""What cron does where clocks are set forward and back, beside a search of every minute."""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise

import pytest

from headrace import Cron
from headrace.timing.clock_changes import whenever_shown
from headrace.timing.zones import offset_at, zone_of
from tests.support.instants import following, ms
from tests.support.minutes import Minutes, changes

ZONES = [
    "America/New_York",
    "Europe/Berlin",
    "Europe/Dublin",  # its summer is the standard time
    "Australia/Lord_Howe",  # by half an hour
    "Pacific/Chatham",  # at a quarter to
    "America/Santiago",  # at midnight, as the next three
    "Asia/Beirut",
    "America/Havana",
    "Africa/Cairo",
    "Antarctica/Troll",  # by two hours
]

MARGIN_MS = 4 * 3_600_000

EVERY = set(range(60))
FIXED = {
    "0 0 * * *": ({0}, {0}),
    "30 0 * * *": ({30}, {0}),
    "15 1 * * *": ({15}, {1}),
    "30 2 * * *": ({30}, {2}),
    "45 2 * * *": ({45}, {2}),
    "0 3 * * *": ({0}, {3}),
    "0,30 0-3 * * *": ({0, 30}, {0, 1, 2, 3}),
    "*/20 1,23 * * *": ({0, 20, 40}, {1, 23}),
    "* 2 * * *": (EVERY, {2}),
}
FOLLOWING = {
    "* * * * *": (EVERY, set(range(24))),
    "0 * * * *": ({0}, set(range(24))),
    "*/25 * * * *": ({0, 25, 50}, set(range(24))),
    "30 */2 * * *": ({30}, set(range(0, 24, 2))),
    "5,50 */3 * * *": ({5, 50}, set(range(0, 24, 3))),
}


@cache
def around(zone: str, change: datetime) -> Minutes:
    """Return the minutes about a change, which was within the day before."""
    return Minutes(zone, change - timedelta(hours=36), change + timedelta(hours=12))


def expected(minutes: Minutes, expression: str, dst: str) -> list[int]:
    at_minutes, at_hours = (FIXED | FOLLOWING)[expression]

    def fits(wall: datetime) -> bool:
        return wall.minute in at_minutes and wall.hour in at_hours

    if expression in FOLLOWING:
        return minutes.whenever_shown(fits)
    return minutes.once_each(fits, is_shifted=dst == "shift")


def inside(found: list[int], minutes: Minutes) -> list[int]:
    """Leave out the ends, where what the clock shows twice may be cut in two."""
    return [
        instant_ms
        for instant_ms in found
        if minutes.begin_ms + MARGIN_MS < instant_ms < minutes.end_ms - MARGIN_MS
    ]


@pytest.mark.parametrize("zone", ZONES)
def test_every_change_is_as_a_search_of_every_minute_finds(zone: str) -> None:
    found = changes(zone, 2024, 2030)
    assert len(found) >= 12
    for change in found:
        minutes = around(zone, change)
        for expression in FIXED | FOLLOWING:
            right = inside(expected(minutes, expression, "shift"), minutes)
            newest = Cron(expression, tz=zone).newest(minutes.begin_ms, minutes.end_ms, 10_000)
            assert inside(newest, minutes) == right, (expression, change)


@pytest.mark.parametrize("zone", ZONES)
def test_what_a_gap_skips_is_as_a_search_of_every_minute_finds(zone: str) -> None:
    for change in changes(zone, 2024, 2030):
        minutes = around(zone, change)
        for expression in FIXED:
            right = inside(expected(minutes, expression, "skip"), minutes)
            cron = Cron(expression, tz=zone, dst="skip")
            newest = cron.newest(minutes.begin_ms, minutes.end_ms, 10_000)
            assert inside(newest, minutes) == right, (expression, change)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("expression", FIXED | FOLLOWING)
def test_the_next_one_is_the_same_from_any_instant_near_a_change(
    zone: str, expression: str
) -> None:
    # Also from inside a gap, and from both passes of a repeated hour.
    for change in changes(zone, 2026, 2026):
        minutes = around(zone, change)
        right = expected(minutes, expression, "shift")
        cron = Cron(expression, tz=zone)
        for after_ms in range(minutes.begin_ms, minutes.end_ms, 25 * 60_000 + 1):
            index = bisect_right(right, after_ms)
            following_one = right[index : index + 1]
            if inside(following_one, minutes):
                assert [cron.after(after_ms)] == following_one, after_ms
            newest = right[index - 1 : index] if index else []
            if inside(newest, minutes):
                assert cron.newest(0, after_ms, 1) == newest, after_ms


@pytest.mark.slow
@pytest.mark.parametrize("zone", ZONES)
def test_a_whole_year_is_as_a_search_of_every_minute_finds(zone: str) -> None:
    begin = datetime.fromisoformat("2026-01-01T00:00Z")
    minutes = Minutes(zone, begin, begin.replace(year=2027))
    for expression in FIXED | FOLLOWING:
        right = inside(expected(minutes, expression, "shift"), minutes)
        newest = Cron(expression, tz=zone).newest(minutes.begin_ms, minutes.end_ms, 600_000)
        assert inside(newest, minutes) == right, expression


def test_the_second_time_is_not_lost_where_wall_times_end() -> None:
    zone, wall_s = zone_of("America/New_York"), ms("2026-11-01T01:30Z") // 1000
    twice = [ms("2026-11-01T01:30-04:00") // 1000, ms("2026-11-01T01:30-05:00") // 1000]
    assert list(whenever_shown([wall_s], zone, is_ascending=True)) == twice
    assert list(whenever_shown([wall_s], zone, is_ascending=False)) == twice[::-1]


def test_a_day_that_a_country_left_out() -> None:
    # Samoa went from 29 to 31 December 2011.
    assert following(Cron("0 9 * * *", tz="Pacific/Apia"), "2011-12-29T12:00Z", 3) == [
        "2011-12-29T09:00:00-10:00",
        "2011-12-31T00:00:00+14:00",
        "2011-12-31T09:00:00+14:00",
    ]
    skipping = Cron("0 9 * * *", tz="Pacific/Apia", dst="skip")
    assert following(skipping, "2011-12-29T20:00Z", 1) == ["2011-12-31T09:00:00+14:00"]


@pytest.mark.parametrize(
    ("cron", "instant", "words"),
    [
        (
            Cron("30 2 * * *", tz="America/New_York"),
            "2026-03-08T03:00-04:00",
            "local 02:30 does not exist: this is the first instant after the gap",
        ),
        (
            Cron("0 30 2 * * *", tz="America/New_York", seconds=True),
            "2026-03-08T03:00-04:00",
            "local 02:30 does not exist: this is the first instant after the gap",
        ),
        (
            Cron("30 1 * * *", tz="America/New_York"),
            "2026-11-01T01:30-04:00",
            "local 01:30 comes twice: this is the first time",
        ),
        (
            Cron("30 * * * *", tz="America/New_York"),
            "2026-11-01T01:30-05:00",
            "local 01:30 comes twice: this is the second time",
        ),
        (Cron("30 2 * * *", tz="America/New_York", dst="skip"), "2026-03-08T03:00-04:00", ""),
        (Cron("0 * * * *", tz="America/New_York"), "2026-03-08T03:00-04:00", ""),
        (Cron("0 3 * * *", tz="America/New_York"), "2026-03-08T03:00-04:00", ""),
        (Cron("30 2 * * *", tz="America/New_York"), "2026-03-09T02:30-04:00", ""),
        (Cron("30 2 * * *"), "2026-03-08T02:30Z", ""),
    ],
    ids=str,
)
def test_an_instant_is_explained(cron: Cron, instant: str, words: str) -> None:
    assert cron.explain_instant(ms(instant)) == words
    if words:
        assert cron.after(ms(instant) - 1) == ms(instant)


@pytest.mark.parametrize("zone", [*ZONES, "Africa/Casablanca", "America/Sao_Paulo", "Asia/Gaza"])
def test_no_clock_is_changed_twice_within_a_day(zone: str) -> None:
    # What `REACH_S` relies on.
    step_s = 6 * 3600
    offsets = [offset_at(zone_of(zone), step * step_s) for step in range(68 * 366 * 4)]
    found = [step for step, (old, new) in enumerate(pairwise(offsets)) if old != new]
    assert all(late - early > 4 for early, late in pairwise(found))

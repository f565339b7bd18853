"""Cron expressions of all sorts, beside cronsim: every difference is of a kind that is named.

The same ones are drawn each time: what would turn up by chance is as likely a fault of cronsim's.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace import Cron, InvalidOption
from headrace.timing.fields import read_fields
from headrace.timing.walls import DAY_S, wall_times
from headrace.timing.zones import gap_before, instants_of, wall_at, zone_of
from tests.support.minutes import changes

# Their clocks change by whole hours. Elsewhere cronsim never returns for some expressions, as for
# `* 1-5/2 * * *` in Pacific/Chatham on 2024-04-07.
ZONES = [
    "Africa/Cairo",
    "America/Havana",
    "America/New_York",
    "America/Santiago",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Europe/Berlin",
    "Europe/Dublin",
]


@st.composite
def items(draw: st.DrawFn, low: int, high: int, *, from_step: bool) -> str:
    first = draw(st.integers(low, high))
    last = draw(st.integers(first, high))
    step = draw(st.integers(1, high - low + 1))
    forms = [str(first), f"*/{step}"]
    if from_step:
        forms.append(f"{first}/{step}")
    if last > first:
        forms += [f"{first}-{last}", f"{first}-{last}/{step}"]
    return draw(st.sampled_from(forms))


def fields(low: int, high: int, *others: str, from_step: bool = True) -> st.SearchStrategy[str]:
    lists = st.lists(items(low, high, from_step=from_step), min_size=1, max_size=3).map(",".join)
    return st.sampled_from(("*", *others)) | lists


MINUTES = fields(0, 59)
DAYS = fields(1, 31, "L", "1,L", "29", "31")
MONTHS = fields(1, 12, "feb", "jan-mar", "oct,dec")
# `5/2` is Friday, and to cronsim Sunday too, which it also counts as 7.
WEEKDAYS = fields(0, 6, "1#1", "5#5", "3L", "0#2,6L", "sat", "mon-fri", "7", "5-7", from_step=False)


def ours(cron: Cron, start: datetime) -> Iterator[datetime]:
    instant_ms = cron.after(int(start.timestamp()) * 1000)
    while instant_ms is not None:
        yield datetime.fromtimestamp(instant_ms / 1000, UTC)
        instant_ms = cron.after(instant_ms)


def theirs(expression: str, start: datetime) -> Iterator[datetime]:
    try:
        # Begun in the second of two equal hours, it tells times of the first, which are over.
        for found in CronSim(expression, start):
            if (instant := found.astimezone(UTC)) > start:
                yield instant
    except CronSimError:  # the day never comes, as far as cronsim sees that
        return


@settings(max_examples=200)
@given(
    st.tuples(MINUTES, fields(0, 23), DAYS, MONTHS, WEEKDAYS).map(" ".join),
    st.integers(1999 * 365, 2040 * 365).map(
        lambda day: datetime.fromordinal(day).replace(tzinfo=UTC)
    ),
)
@example("0 0 * 2 1#5", datetime(2050, 1, 1, tzinfo=UTC))
@example("0 0 29 2 *", datetime(2096, 3, 1, tzinfo=UTC))
@example("59/15 23/6 28/3 12/2 *", datetime(2026, 11, 30, tzinfo=UTC))
def test_in_utc_both_find_the_same(expression: str, start: datetime) -> None:
    expected = list(islice(theirs(expression, start), 12))
    if expected:
        assert list(islice(ours(Cron(expression), start), 12)) == expected
    else:
        with pytest.raises(InvalidOption, match="never comes"):
            Cron(expression)


@settings(max_examples=100)
@given(
    st.tuples(MINUTES, fields(0, 5), st.just("*"), st.just("*"), fields(0, 6, from_step=False)),
    st.sampled_from(ZONES),
    st.integers(0, 11),
    st.integers(1, 36),
)
@example(("1", "0/1", "*", "*", "*"), "Africa/Cairo", 1, 15)
@example(("*", "1", "*", "*", "0"), "America/Havana", 0, 8)
def test_near_a_change_the_differences_are_known(
    texts: tuple[str, ...], zone: str, number: int, hours_before: int
) -> None:
    end = changes(zone, 2024, 2030)[number] + timedelta(hours=6)
    start = end - timedelta(hours=6 + hours_before)
    expression = " ".join(texts)
    mine = set(takewhile(lambda found: found <= end, ours(Cron(expression, tz=zone), start)))
    others = takewhile(
        lambda found: found <= end, theirs(expression, start.astimezone(ZoneInfo(zone)))
    )
    # Two times that a gap moves to one instant are two to cronsim, and one here.
    for found in mine ^ set(others):
        assert kind(expression, zone, found, is_mine=found in mine) in KINDS


def kind(expression: str, zone_name: str, found: datetime, *, is_mine: bool) -> str:
    """Return of which kind a difference is, "" if of none."""
    zone, instant_s = zone_of(zone_name), int(found.timestamp())
    wall_s = wall_at(zone, instant_s)
    first, second = instants_of(zone, wall_s)
    gap = gap_before(zone, instant_s)
    fields = read_fields(expression, seconds=False)
    if fields.texts[0][0] == "*" and not fields.is_every_hour:
        is_moved = is_mine and len(gap) > 0
        is_repeated = not is_mine and first < second == instant_s
        if is_moved or is_repeated:
            return "star of the minute"
        before = gap_before(zone, instant_s - wall_s % 3600)
        is_left_out = is_mine and len(before) > 0 and before.start % DAY_S == 0
        return "left out behind midnight" if is_left_out else ""
    fits = wall_s in wall_times(expression, seconds=False)
    is_midnight = len(gap) > 0 and gap.start % DAY_S == 0
    return "made up at midnight" if is_midnight and not is_mine and not fits else ""


KINDS = {
    # A minute that begins with a star makes an entry follow real time, as in Debian's cron. Here
    # the hour alone does: `*/15 2 * * *` runs once a day at each of its times.
    "star of the minute",
    # Where midnight does not exist, cronsim takes the end of the gap though it does not fit.
    "made up at midnight",
    # There, in entries that follow real time, it leaves out the day's first hour where no other
    # hour of the gap is asked for, and comes to the day from another.
    "left out behind midnight",
}


def test_each_kind_of_difference_is_there() -> None:
    before = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
    mine = next(ours(Cron("*/15 2 * * *", tz="Europe/Berlin"), before))
    other = next(theirs("*/15 2 * * *", before.astimezone(ZoneInfo("Europe/Berlin"))))
    assert mine.isoformat() == "2026-03-29T01:00:00+00:00"
    assert other.isoformat() == "2026-03-30T00:00:00+00:00"
    assert kind("*/15 2 * * *", "Europe/Berlin", mine, is_mine=True) == "star of the minute"

    before = datetime(2029, 3, 11, 4, 30, tzinfo=UTC)
    mine = next(ours(Cron("* */2 * * 0", tz="America/Havana"), before))
    other = next(theirs("* */2 * * 0", before.astimezone(ZoneInfo("America/Havana"))))
    assert mine.isoformat() == "2029-03-11T06:00:00+00:00"
    assert other.isoformat() == "2029-03-11T05:00:00+00:00"
    assert kind("* */2 * * 0", "America/Havana", other, is_mine=False) == "made up at midnight"
    assert kind("* */2 * * 0", "America/Havana", mine, is_mine=True) == ""

    hour = list(islice(ours(Cron("* 1 * * 0", tz="America/Havana"), before), 60))
    other = next(theirs("* 1 * * 0", before.astimezone(ZoneInfo("America/Havana"))))
    assert hour[-1].isoformat() == "2029-03-11T05:59:00+00:00"
    assert other.isoformat() == "2029-03-18T05:00:00+00:00"
    found = kind("* 1 * * 0", "America/Havana", hour[-1], is_mine=True)
    assert found == "left out behind midnight"


def test_a_weekday_with_a_step_ends_on_saturday() -> None:
    friday = datetime(2026, 11, 27, tzinfo=UTC)
    assert [found.day for found in islice(ours(Cron("0 12 * * 5/2"), friday), 2)] == [27, 4]
    assert [found.day for found in islice(theirs("0 12 * * 5/2", friday), 2)] == [27, 29]

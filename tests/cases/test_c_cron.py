"""What cron did wrong elsewhere where clocks change, or where a day never comes."""

from __future__ import annotations

from itertools import pairwise

import pytest

from headrace import Cron, InvalidOption
from tests.support.instants import following, ms


def test_a_daily_job_keeps_its_local_hour_in_spring() -> None:
    # BC-35: it ran one hour late on the day of the change.
    found = following(Cron("4 16 * * *", tz="America/New_York"), "2026-03-06T22:00Z", 4)
    assert found == [
        "2026-03-07T16:04:00-05:00",
        "2026-03-08T16:04:00-04:00",
        "2026-03-09T16:04:00-04:00",
        "2026-03-10T16:04:00-04:00",
    ]


def test_an_hourly_job_runs_every_real_hour_of_the_night_in_autumn() -> None:
    # BC-36: the repeated hour was skipped.
    hourly = Cron("0 * * * *", tz="US/Pacific")
    begin, end = ms("2026-11-01T00:00-07:00"), ms("2026-11-02T00:00-08:00")
    found = hourly.newest(begin - 1, end - 1, 1000)
    assert len(found) == 25
    assert {late - early for early, late in pairwise(found)} == {3_600_000}


def test_a_weekly_job_runs_once_after_the_night_in_autumn() -> None:
    # BC-36: it ran twice, an hour apart.
    found = following(Cron("0 6 * * 1", tz="US/Pacific"), "2026-10-31T12:00Z", 2)
    assert found == ["2026-11-02T06:00:00-08:00", "2026-11-09T06:00:00-08:00"]


def test_a_job_in_the_repeated_hour_runs_once() -> None:
    # BC-36: by our rule at the first of both times.
    found = following(Cron("30 1 * * *", tz="US/Pacific"), "2026-10-31T12:00Z", 2)
    assert found == ["2026-11-01T01:30:00-07:00", "2026-11-02T01:30:00-08:00"]


@pytest.mark.parametrize(
    ("zone", "before", "expected"),
    [
        (
            "America/New_York",
            "2026-03-07T12:00Z",
            ["2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00", "2026-03-10T02:30:00-04:00"],
        ),
        (
            "Europe/Amsterdam",
            "2026-03-28T12:00Z",
            ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00", "2026-03-31T02:30:00+02:00"],
        ),
    ],
    ids=["New York", "Amsterdam"],
)
def test_a_job_in_the_gap_runs_after_it_and_then_as_usual(
    zone: str, before: str, expected: list[str]
) -> None:
    # BC-37: it skipped ten months, or looped.
    assert following(Cron("30 2 * * *", tz=zone), before, 3) == expected
    assert following(Cron("30 2 * * *", tz=zone, dst="skip"), before, 2) == expected[1:]


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("Australia/Lord_Howe", "2019-10-06"),
        ("Australia/Lord_Howe", "2020-04-05"),
        ("Pacific/Chatham", "2019-09-29"),
        ("America/Santiago", "2019-09-08"),
        ("Antarctica/Troll", "2019-03-31"),
    ],
)
@pytest.mark.parametrize("expression", ["0 * * * *", "30 2 * * *", "*/10 0-3 * * *"])
def test_forth_and_back_agree_at_odd_changes(zone: str, day: str, expression: str) -> None:
    # BC-38: next, previous and match disagreed. tests/timing/test_clock_changes.py searches.
    cron = Cron(expression, tz=zone)
    begin, end = ms(f"{day}T00:00Z") - 86_400_000, ms(f"{day}T00:00Z") + 86_400_000
    found = []
    instant = cron.after(begin)
    while instant is not None and instant <= end:
        found.append(instant)
        instant = cron.after(instant)
    assert all(early < late for early, late in pairwise(found))
    assert cron.newest(begin, end, 1000) == found
    assert all(cron.newest(0, instant, 1) == [instant] for instant in found)


def test_what_can_never_run_is_refused_when_it_is_declared() -> None:
    # BC-39: it was accepted, and the scheduler's loop died of it.
    junk = " ".join(["99"] * 60)
    for expression in ("0 0 31 2 *", "0 0 30 2 *", "0 0 31 4 *", junk, "0 0 0 * *", "*/0 * * * *"):
        with pytest.raises(InvalidOption, match=r"^Cron: "):
            Cron(expression)

"""When cron expressions are due."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest

from headrace import Cron, InvalidOption
from tests.support.instants import following, ms


def test_the_hours_are_those_of_the_zone() -> None:
    weekly = Cron("0 9 * * 1", tz="America/New_York")
    assert following(weekly, "2026-10-19T13:00Z", 3) == [
        "2026-10-26T09:00:00-04:00",
        "2026-11-02T09:00:00-05:00",
        "2026-11-09T09:00:00-05:00",
    ]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 0 31 * *", ["2026-12-31", "2027-01-31", "2027-03-31"]),
        ("0 0 L * *", ["2026-12-31", "2027-01-31", "2027-02-28"]),
        ("0 0 15,L 2 *", ["2027-02-15", "2027-02-28", "2028-02-15"]),
        ("0 0 29 2 *", ["2028-02-29", "2032-02-29", "2036-02-29"]),
        ("0 0 * * 5#1", ["2026-12-04", "2027-01-01", "2027-02-05"]),
        ("0 0 * * fri#1", ["2026-12-04", "2027-01-01", "2027-02-05"]),
        ("0 0 * * 5L", ["2026-12-25", "2027-01-29", "2027-02-26"]),
        ("0 0 * 4 5L", ["2027-04-30", "2028-04-28", "2029-04-27"]),
        ("0 0 * * L5", ["2026-12-25", "2027-01-29", "2027-02-26"]),
        ("0 0 * * 1#5", ["2027-03-29", "2027-05-31", "2027-08-30"]),
        ("0 0 * 2 1#5", ["2044-02-29", "2072-02-29", "2112-02-29"]),
        ("0 0 ? * mon", ["2026-12-07", "2026-12-14", "2026-12-21"]),
        ("0 0 1 * ?", ["2026-12-01", "2027-01-01", "2027-02-01"]),
        # Both restricted: either. One begins with a star: both.
        ("0 0 13 * 5", ["2026-12-04", "2026-12-11", "2026-12-13"]),
        ("0 0 13 * 5#1", ["2026-12-04", "2026-12-13", "2027-01-01"]),
        ("0 0 */13 * 5", ["2027-01-01", "2027-05-14", "2027-08-27"]),
        ("0 0 L * 5L", ["2026-12-25", "2026-12-31", "2027-01-29"]),
        ("0 0 13 * */5", ["2026-12-13", "2027-06-13", "2027-08-13"]),
        # Ranges may go round.
        ("0 0 * nov-jan 1#1", ["2026-12-07", "2027-01-04", "2027-11-01"]),
        ("0 0 * * fri-sun", ["2026-12-04", "2026-12-05", "2026-12-06"]),
        ("0 0 * * 5-7", ["2026-12-04", "2026-12-05", "2026-12-06"]),
        ("0 0 * * 0-7", ["2026-12-01", "2026-12-02", "2026-12-03"]),
        ("0 0 * * 1-7/2", ["2026-12-02", "2026-12-04", "2026-12-06"]),
        ("0 0 28/3 12 *", ["2026-12-28", "2026-12-31", "2027-12-28"]),
        ("@monthly", ["2026-12-01", "2027-01-01", "2027-02-01"]),
        ("@Weekly", ["2026-12-06", "2026-12-13", "2026-12-20"]),
        ("@yearly", ["2027-01-01", "2028-01-01", "2029-01-01"]),
        (" 0  0 1\t* * ", ["2026-12-01", "2027-01-01", "2027-02-01"]),
    ],
)
def test_days(expression: str, expected: list[str]) -> None:
    found = following(Cron(expression), "2026-11-30T00:00Z", 3)
    assert found == [f"{day}T00:00:00+00:00" for day in expected]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("* * * * *", ["12:01:00", "12:02:00", "12:03:00"]),
        ("*/25 * * * *", ["12:25:00", "12:50:00", "13:00:00"]),
        ("59/15 * * * *", ["12:59:00", "13:59:00", "14:59:00"]),
        ("5-20/10 13,15 * * *", ["13:05:00", "13:15:00", "15:05:00"]),
        ("0 22-2 * * *", ["22:00:00", "23:00:00", "00:00:00"]),
        ("@hourly", ["13:00:00", "14:00:00", "15:00:00"]),
    ],
)
def test_times(expression: str, expected: list[str]) -> None:
    found = following(Cron(expression), "2026-11-30T12:00Z", 3)
    assert [text[11:19] for text in found] == expected


def test_six_fields_begin_with_the_second() -> None:
    cron = Cron("*/20 59 12 * * *", seconds=True)
    assert [text[11:19] for text in following(cron, "2026-11-30T12:00Z", 4)] == [
        "12:59:00",
        "12:59:20",
        "12:59:40",
        "12:59:00",
    ]
    assert Cron("@daily", seconds=True).after(0) == Cron("@daily").after(0)


def test_an_instant_is_later_and_not_before_the_start() -> None:
    daily, day_ms = Cron("@daily"), 24 * 3_600_000
    noon = ms("2026-11-30T12:00Z")
    midnight = noon + day_ms // 2
    assert daily.after(midnight - 1) == midnight
    assert daily.after(midnight) == midnight + day_ms
    assert daily.after(0, start_ms=midnight) == midnight
    assert daily.after(0, start_ms=midnight + 1) == midnight + day_ms
    assert daily.after(midnight, start_ms=0) == midnight + day_ms


def test_after_the_last_year_there_is_none() -> None:
    assert Cron("@daily").after(ms("9000-12-31T12:00Z")) is None
    assert Cron("@daily").after(10**18) is None
    assert Cron("@daily").after(-(10**18)) == 0
    assert Cron("@daily").newest(-(10**18), 10**18, 0) == []


@pytest.mark.parametrize("expression", ["* * * * *", "0 9 * * 1", "0 0 29 2 *", "30 2 * * *"])
def test_the_newest_are_the_last_of_all(expression: str) -> None:
    cron = Cron(expression, tz="America/New_York")
    after, until = ms("2024-02-20T00:00Z"), ms("2024-03-20T00:00Z")
    found = []
    instant = cron.after(after)
    while instant is not None and instant <= until:
        found.append(instant)
        instant = cron.after(instant)
    assert all(early < late for early, late in pairwise(found))
    assert cron.newest(after, until, len(found) + 1) == found
    assert cron.newest(after, until, 2) == found[-2:]
    assert cron.newest(0, until, 2) == cron.newest(0, until, 1000)[-2:]
    middle = found[len(found) // 2]
    assert cron.newest(after, until, len(found), start_ms=middle) == found[len(found) // 2 :]


def test_the_shortest_gap_is_that_of_the_next_ones() -> None:
    assert Cron("0,10 * * * *").shortest_gap_ms(0) == 600_000
    assert Cron("0 9 * * 1").shortest_gap_ms(0) == 7 * 24 * 3_600_000
    assert Cron("@yearly").shortest_gap_ms(ms("9000-01-02T00:00Z")) is None


def test_equal_expressions_are_equal() -> None:
    assert Cron(" 0 9  * * 1") == Cron("0 9 * * 1", tz="UTC")
    assert Cron("0 9 * * 1") != Cron("0 9 * * 1", dst="skip")


def test_a_cron_as_text() -> None:
    assert str(Cron("0 9 * * 1", tz="America/New_York")) == "cron 0 9 * * 1 America/New_York"
    assert str(Cron("@daily", dst="skip")) == "cron @daily UTC dst=skip"


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"dst": "wall"}, "dst='wall': pass 'shift' or 'skip'"),
        ({"seconds": 1}, "seconds=1: pass True or False"),
        ({"tz": "Europe/Berln"}, "tz='Europe/Berln' is not a time zone: did you mean 'Europe/Be"),
    ],
    ids=["dst", "seconds", "tz"],
)
def test_options_out_of_bounds_are_refused(options: dict[str, object], match: str) -> None:
    with pytest.raises(InvalidOption, match=match):
        Cron("0 9 * * 1", **options)  # type: ignore[arg-type]  # what callers pass all the same


def test_a_program_without_schedules_does_not_import_croniter() -> None:
    code = "import sys, headrace; sys.exit('croniter' in sys.modules or 'dateutil' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

"""Durations and instants of the public API to milliseconds."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from headrace.clock import MAX_DURATION_MS, datetime_of, duration_ms, epoch_ms, instant_ms
from headrace.errors import InvalidOption


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (1, 1000),
        (0.25, 250),
        (0.0001, 1),
        (timedelta(milliseconds=5), 5),
        (timedelta(microseconds=1), 1),
        (timedelta(days=2), 172_800_000),
        (MAX_DURATION_MS / 1000, MAX_DURATION_MS),
    ],
)
def test_durations_are_rounded_up_to_milliseconds(value: float | timedelta, expected: int) -> None:
    assert duration_ms(value, name="delay") == expected


@pytest.mark.parametrize(
    "value",
    [
        -1,
        -1e-9,
        1e18,
        10**400,
        -(10**400),
        math.nan,
        math.inf,
        -math.inf,
        timedelta(days=-1),
        timedelta.max,
        "5",
        b"5",
        True,
        False,
        None,
        [1],
        datetime(2026, 1, 1, tzinfo=UTC),
    ],
)
def test_a_bad_duration_is_named_with_its_value(value: Any) -> None:
    # RELIABILITY §5 46.
    with pytest.raises(InvalidOption, match=r"^delay=") as caught:
        duration_ms(value, name="delay")
    assert repr(value)[:20] in str(caught.value)


def test_a_least_duration_is_kept() -> None:
    assert duration_ms(0.001, name="timeout", least_ms=1) == 1
    with pytest.raises(InvalidOption, match=r"0\.001 seconds"):
        duration_ms(0, name="timeout", least_ms=1)


def test_an_instant_is_the_same_in_every_time_zone() -> None:
    instant = datetime(2026, 3, 1, 12, 0, 0, 1500, tzinfo=UTC)
    elsewhere = instant.astimezone(timezone(timedelta(hours=5, minutes=45)))
    assert instant_ms(instant, name="run_at") == instant_ms(elsewhere, name="run_at")
    assert datetime_of(instant_ms(instant, name="run_at")) == instant.replace(microsecond=2000)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (datetime(2026, 1, 1), "naive"),  # noqa: DTZ001 (that is the point)
        (datetime(1960, 1, 1, tzinfo=UTC), "out of bounds"),
        (datetime.max.replace(tzinfo=UTC), "out of bounds"),
        (datetime.min.replace(tzinfo=UTC), "out of bounds"),
        ("2026-01-01", "aware datetime"),
        (1e9, "aware datetime"),
    ],
)
def test_a_bad_instant_says_what_is_wrong(value: Any, words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        instant_ms(value, name="run_at")


def test_an_instant_of_any_age_does_not_depend_on_the_clock() -> None:
    assert epoch_ms(datetime(2999, 1, 1, tzinfo=UTC), name="at") == 32_472_144_000_000
    last = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
    assert datetime_of(epoch_ms(last, name="at")) == last


@pytest.mark.parametrize(
    "value",
    [
        datetime.max.replace(tzinfo=UTC),  # rounded up it would be in the year 10,000
        datetime.min.replace(tzinfo=UTC),
        datetime(1969, 12, 31, tzinfo=UTC),
    ],
    ids=str,
)
def test_an_instant_that_no_datetime_can_hold_is_refused(value: datetime) -> None:
    with pytest.raises(InvalidOption, match="use 1970 to 9999"):
        epoch_ms(value, name="at")

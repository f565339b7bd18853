"""Intervals and single instants."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest

from headrace import At, Cron, Every, InvalidOption
from headrace.timing import Timing

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)


@pytest.mark.parametrize(
    ("interval", "interval_ms"),
    [
        (30, 30_000),
        (0.1, 100),
        (16.1, 16_100),  # 16,100.000000000002 as a float
        (timedelta(hours=2), 7_200_000),
        (10 * 366 * 24 * 3600, 316_224_000_000),
    ],
    ids=str,
)
def test_an_interval_is_seconds_or_a_timedelta(
    interval: float | timedelta, interval_ms: int
) -> None:
    assert Every(interval).interval_ms == interval_ms
    assert Every(interval) == Every(interval_ms / 1000)


@pytest.mark.parametrize(
    "interval",
    [0, -1, 0.0999, math.nan, math.inf, 1e18, "30", None, True, timedelta(0), timedelta(days=3661)],
    ids=str,
)
def test_an_interval_out_of_bounds_is_refused(interval: object) -> None:
    with pytest.raises(InvalidOption, match=r"^Every\.interval="):
        Every(interval)  # type: ignore[arg-type]  # what callers pass all the same


def test_without_a_start_the_instants_are_multiples_of_the_interval() -> None:
    assert Every(30).after(NOON_MS - 1) == NOON_MS
    assert Every(30).after(NOON_MS) == NOON_MS + 30_000
    assert Every(7).after(NOON_MS) % 7000 == 0


def test_with_a_start_they_are_counted_from_it() -> None:
    assert Every(30).after(0, start_ms=NOON_MS + 1) == NOON_MS + 1
    assert Every(30).after(NOON_MS, start_ms=NOON_MS + 1) == NOON_MS + 1
    assert Every(30).after(NOON_MS + 1, start_ms=NOON_MS + 1) == NOON_MS + 30_001


@pytest.mark.parametrize("start_ms", [None, NOON_MS - 45_000, NOON_MS + 45_000])
@pytest.mark.parametrize("limit", [0, 1, 3, 1000])
def test_the_newest_of_an_interval_are_the_last_of_all(start_ms: int | None, limit: int) -> None:
    every, after_ms, until_ms = Every(7), NOON_MS - 100_000, NOON_MS + 100_000
    found = []
    instant_ms = every.after(after_ms, start_ms=start_ms)
    while instant_ms <= until_ms:
        found.append(instant_ms)
        instant_ms = every.after(instant_ms, start_ms=start_ms)
    expected = found[-limit:] if limit else []
    assert every.newest(after_ms, until_ms, limit, start_ms=start_ms) == expected


def test_the_newest_of_ages_of_an_interval_are_few() -> None:
    found = Every(0.1).newest(0, NOON_MS, 2)
    assert found == [NOON_MS - 100, NOON_MS]


def test_the_shortest_gap_of_an_interval_is_the_interval() -> None:
    assert Every(2.5).shortest_gap_ms(NOON_MS) == 2500


def test_an_instant_comes_once() -> None:
    at = At(NOON)
    assert at.after(NOON_MS - 1) == NOON_MS
    assert at.after(NOON_MS) is None
    assert at.after(0, start_ms=NOON_MS + 1) is None
    assert at.newest(0, NOON_MS, 5) == [NOON_MS]
    assert at.newest(0, NOON_MS - 1, 5) == at.newest(NOON_MS, NOON_MS, 5) == []
    assert at.newest(0, NOON_MS, 0) == []
    assert at.shortest_gap_ms(0) is None


def test_an_instant_is_kept_in_utc_to_the_millisecond() -> None:
    elsewhere = NOON.astimezone(timezone(timedelta(hours=-5)))
    assert At(elsewhere) == At(NOON)
    assert At(NOON + timedelta(microseconds=1)) == At(NOON + timedelta(milliseconds=1))


@pytest.mark.parametrize(
    "instant",
    [NOON.replace(tzinfo=None), "2026-11-29T12:00Z", 1e9, None, datetime(1969, 1, 1, tzinfo=UTC)],
    ids=str,
)
def test_what_is_no_instant_is_refused(instant: object) -> None:
    with pytest.raises(InvalidOption, match=r"^At\.instant="):
        At(instant)  # type: ignore[arg-type]  # what callers pass all the same


@pytest.mark.parametrize(
    ("timing", "text", "words"),
    [
        (Every(30), "every 30 s", "every 30 seconds"),
        (Every(0.25), "every 0.25 s", "every 0.25 seconds"),
        (Every(1), "every 1 s", "every second"),
        (Every(5400), "every 5400 s", "every 90 minutes"),
        (Every(timedelta(days=3660)), "every 316224000 s", "every 3,660 days"),
        (At(NOON), "at 2026-11-29T12:00:00Z", "once, at 12:00:00 on 29 November 2026, UTC"),
        (
            At(NOON + timedelta(milliseconds=250)),
            "at 2026-11-29T12:00:00.250Z",
            "once, at 12:00:00 on 29 November 2026, UTC",
        ),
    ],
    ids=str,
)
def test_timings_as_text(timing: Every | At, text: str, words: str) -> None:
    assert str(timing) == text
    assert timing.words() == words
    assert timing.explain_instant(NOON_MS) == ""


@pytest.mark.parametrize(
    "timing",
    [Every(30), Every(timedelta(minutes=5)), At(NOON), Cron("0 9 * * 1", tz="Europe/Berlin")],
    ids=str,
)
def test_timings_can_be_stored(timing: Timing) -> None:
    for format_ in (msgspec.msgpack, msgspec.json):
        stored = format_.encode(timing)
        assert format_.decode(stored, type=Timing) == timing
        assert hash(format_.decode(stored, type=Timing)) == hash(timing)


def test_what_is_stored_is_checked_when_it_is_read() -> None:
    for stored in ({"type": "every", "interval": 0}, {"type": "cron", "expression": "0 25 * * *"}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(stored, Timing)

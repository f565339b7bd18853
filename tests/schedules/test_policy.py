"""What a schedule may be asked, and what is refused, whoever asks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace import At, Cron, Every, InvalidOption
from headrace.policy import check_body, check_schedule_id, check_timing, policy_fields
from headrace.schedule import ScheduleBody
from tests.support.schedules import JOB

NEW_YEAR = datetime(2030, 1, 1, tzinfo=UTC)


def fields(**said: Any) -> dict[str, Any]:
    return policy_fields(said, taker="App.cron")


def body(timing: Any, **said: Any) -> ScheduleBody:
    return check_body(ScheduleBody(job=JOB, timing=timing, **fields(**said)))


def test_what_is_said_is_stored_in_milliseconds_and_plain_words() -> None:
    assert fields() == {}
    assert fields(catch_up=None, jitter=None, overlap=None, start=None, end=None) == {}
    assert fields(catch_up="latest", overlap="skip", jitter=timedelta(seconds=1.5)) == {
        "catch_up": "latest",
        "overlap": "skip",
        "jitter_ms": 1_500,
    }
    assert fields(start=NEW_YEAR, end=NEW_YEAR) == dict.fromkeys(
        ("start_ms", "end_ms"), 1_893_456_000_000
    )
    assert fields(catch_up=1_000) == {"catch_up": 1_000}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"catch_up": "all"}, r"catch_up='all' is not known: use 'skip', 'latest' or a whole"),
        ({"catch_up": 0}, r"catch_up=0 is not known.*1 to 1,000"),
        ({"catch_up": 1_001}, r"catch_up=1001 is not known"),
        ({"catch_up": True}, r"catch_up=True is not known"),
        ({"catch_up": 1.5}, r"catch_up=1\.5 is not known"),
        ({"overlap": "deny"}, r"overlap='deny' is not known: use 'allow' or 'skip'"),
        ({"overlap": False}, r"overlap=False is not known"),
        ({"jitter": -1}, r"jitter=-1 is out of bounds"),
        ({"jitter": "1"}, r"jitter='1' is not a duration"),
        ({"jitter": float("nan")}, r"jitter=nan is out of bounds"),
        ({"start": datetime(2030, 1, 1)}, r"start=.* is naive: give it a time zone"),  # noqa: DTZ001
        ({"end": "2030-01-01"}, r"end='2030-01-01' is not an instant: pass an aware datetime"),
        ({"end": datetime(9999, 1, 1, tzinfo=UTC)}, r"end=.* is out of bounds"),
    ],
    ids=str,
)
def test_what_is_out_of_bounds_is_refused_with_the_value(said: Any, words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        fields(**said)


def test_an_unknown_option_says_what_may_be_meant() -> None:
    with pytest.raises(TypeError, match=r"App\.cron\(\).*'catchup': did you mean catch_up="):
        fields(catchup=1)


@pytest.mark.parametrize(
    ("timing", "most"),
    [(Every(30), 30), (Cron("0,7 * * * *"), 420), (Cron("* * * * * *", seconds=True), 1)],
    ids=str,
)
def test_jitter_may_be_the_shortest_gap_and_no_more(timing: Any, most: float) -> None:
    assert body(timing, jitter=most).jitter_ms == most * 1_000
    words = rf"jitter={most + 0.5:g} s is over the shortest time.*use {most:g} s at most"
    with pytest.raises(InvalidOption, match=words):
        body(timing, jitter=most + 0.5)


def test_jitter_of_a_one_off_may_be_any() -> None:
    assert body(At(NEW_YEAR), jitter=timedelta(days=1)).jitter_ms == 86_400_000


def test_an_end_before_the_start_is_refused() -> None:
    words = r"end=2029-12-31T23:59:59\+00:00 is before start=2030-01-01T00:00:00\+00:00"
    with pytest.raises(InvalidOption, match=words):
        body(Every(1), start=NEW_YEAR, end=NEW_YEAR - timedelta(seconds=1))
    assert body(Every(1), start=NEW_YEAR, end=NEW_YEAR).end_ms == 1_893_456_000_000


@pytest.mark.parametrize(
    ("timing", "words"),
    [
        ("0 9 * * 1", r"timing='0 9 \* \* 1' is no timing: pass Cron\('0 9 \* \* 1'\)"),
        (30, r"timing=30 is no timing: pass .*Every\(30\)"),
        (NEW_YEAR, r"timing=datetime.* is no timing: pass .*At\(instant\)"),
    ],
    ids=["text", "number", "instant"],
)
def test_what_is_no_timing_is_refused(timing: object, words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        check_timing(timing)


@pytest.mark.parametrize("schedule_id", ["a", "rapport:été", "x" * 200, "ü" * 100])
def test_ids_of_200_bytes_are_taken(schedule_id: str) -> None:
    assert check_schedule_id(schedule_id) == schedule_id


@pytest.mark.parametrize(
    "schedule_id",
    ["", "x" * 201, "ü" * 101, "a\nb", "a\0", "\x7f", "\ud800", 5, None, b"x"],
    ids=["none", "long", "wide", "newline", "null", "delete", "surrogate", "int", "None", "bytes"],
)
def test_any_other_id_is_refused(schedule_id: Any) -> None:
    with pytest.raises(
        InvalidOption, match=r"schedule id .*1 to 200 bytes of UTF-8 without control"
    ):
        check_schedule_id(schedule_id)

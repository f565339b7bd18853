"""What people read: durations, instants, aligned columns, and nothing that a terminal obeys."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headrace.cli.output import ago, message_of, one_line, plural, span, when
from headrace.errors import StorageUnavailable
from headrace.plain import printable


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0ms"),
        (999, "999ms"),
        (1000, "1.0s"),
        (9_990, "10.0s"),
        (12_345, "12s"),
        (60_000, "1m"),
        (310_000, "5m 10s"),
        (3_600_000, "1h"),
        (7_500_000, "2h 5m"),
        (86_400_000, "1d"),
        (3 * 86_400_000 + 4 * 3_600_000 + 5 * 60_000, "3d 4h"),
        (86_400_000 + 60_000, "1d"),
    ],
)
def test_a_duration_has_its_two_largest_units(milliseconds: int, text: str) -> None:
    assert span(milliseconds) == text


def test_an_instant_is_told_from_now() -> None:
    now = datetime.now(UTC)
    assert ago(now - timedelta(hours=2)) == "2h ago"
    assert ago(now + timedelta(hours=2, seconds=30)).startswith("in 2h")
    assert ago(None) == when(None) == ""
    assert when(datetime.fromtimestamp(1_700_000_000, UTC)).startswith("2023-11-14 22:13:20 UTC (")


def test_control_characters_are_not_printed() -> None:
    assert printable("a\x1b[31m\tb\nc\x9b\r") == "a\ufffd[31m\tb\nc\ufffd\ufffd"
    assert one_line(" a\n b\x1b\tc ") == "a b\ufffd c"


def test_counts_are_told_with_their_noun() -> None:
    assert [plural(count, "job") for count in (0, 1, 1200)] == ["0 jobs", "1 job", "1,200 jobs"]


def test_what_is_ours_is_told_as_it_is() -> None:
    assert message_of(StorageUnavailable("SQLite in /x: busy")) == "SQLite in /x: busy"

"""docs/cron.md: its table of clock changes, and what it says is refused."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from headrace import Cron, InvalidOption
from tests.support.instants import local

PAGE = (Path(__file__).parents[2] / "docs" / "cron.md").read_text()


def rows() -> list[list[str]]:
    """Return the cells of the table of examples."""
    _, table = PAGE.split("| expression | zone | day | runs at |\n|---|---|---|---|\n")
    lines = table.split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def runs_on(cron: Cron, day: str) -> list[str]:
    """Return when a timing is due on a local day, as the table says it: time and offset."""
    noon = datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=ZoneInfo(cron.tz))
    begin, end = (int((noon + timedelta(days=days)).timestamp() * 1000) for days in (-1, 1))
    found = [local(instant, cron.tz) for instant in cron.newest(begin, end, 1000)]
    return [text[11:16] + text[19:] for text in found if text.startswith(day)]


@pytest.mark.parametrize(("entry", "zone", "day", "expected"), rows(), ids=range(len(rows())))
def test_the_examples_are_so(entry: str, zone: str, day: str, expected: str) -> None:
    is_skipped = entry.endswith('with `dst="skip"`')
    cron = Cron(entry.split("`")[1], tz=zone, dst="skip" if is_skipped else "shift")
    found = runs_on(cron, day[:10])
    first, _, last = expected.partition(" … ")
    firsts = [] if first == "never" else first.split(", ")
    assert found[: len(firsts)] == firsts
    assert found[len(firsts) :][-1:] == ([last] if last else [])


@pytest.mark.parametrize(("entry", "zone", "day", "expected"), rows(), ids=range(len(rows())))
def test_the_clock_changes_as_the_table_says(
    entry: str, zone: str, day: str, expected: str
) -> None:
    before, after = re.findall(r"\d\d:\d\d", day)
    midnight = datetime.fromisoformat(f"{day[:10]}T00:00Z")
    shown = [
        (midnight + timedelta(minutes=number)).astimezone(ZoneInfo(zone))
        for number in range(-1440, 1440)
    ]
    changes = [pair for pair in pairwise(shown) if pair[0].utcoffset() != pair[1].utcoffset()]
    assert len(changes) == 1
    ((old, new),) = changes
    assert f"{new:%Y-%m-%d}" == day[:10]
    assert f"{new:%H:%M}" == after
    assert f"{old + timedelta(minutes=1):%H:%M}" == before


def test_what_the_page_says_is_refused_is_refused() -> None:
    refused = PAGE.partition("## What is refused")[2]
    for expression in ("0 0 30 2 *", "0 0 31 4,6 *", "*/90", "5-5", "22-2/2", "@reboot"):
        assert f"`{expression}`" in refused
        is_field = expression[0] != "@" and " " not in expression
        with pytest.raises(InvalidOption):
            Cron(f"0 {expression} * * *" if is_field else expression)

"""Tables in terminals: what is left out where room is short, and where there are colours."""

from __future__ import annotations

import asyncio
import re

import pytest

from headrace import App, FailPermanently, JobFailed, Worker
from headrace.cli import limits, queues
from headrace.cli.colours import Coloured
from headrace.cli.tables import Column, lines
from headrace.testing import running
from tests.cli.conftest import Cli
from tests.support.terminal import Terminal
from tests.support.until import patience

LONG_ID = "order:2026-11-28:00000000000000000000000042"
SAID = "the mailbox a.very.long.address@example.com does not take any message"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")

NAMES = (Column("NAME"), Column("N", rank=1), Column("M", rank=2), Column("NOTE", is_cut=True))


def test_columns_are_aligned_numbers_to_the_right() -> None:
    columns = (Column("NAME"), Column("N"), Column("NOTE"))
    found = lines(columns, [("a", 1, ""), ("longer", 1234, "x\ny")], room=0)
    assert [COLOUR.sub("", line) for line in found] == [
        "NAME        N  NOTE",
        "a           1",
        "longer  1,234  x y",
    ]


@pytest.mark.parametrize(
    ("room", "header"),
    [
        (0, "NAME N M NOTE"),
        (60, "NAME N M NOTE"),
        (46, "NAME N M NOTE"),
        (42, "NAME N NOTE"),
        (36, "NAME NOTE"),
        (20, "NAME NOTE"),
        (8, "NAME N…"),
        (3, "NA…"),
    ],
)
def test_f21_what_matters_least_goes_first_and_the_rest_is_cut(room: int, header: str) -> None:
    """F21: the end of a table is not what may be missing."""
    found = [
        COLOUR.sub("", line) for line in lines(NAMES, [("name", 1_000, 2_000, "x" * 50)], room=room)
    ]
    assert found[0].split() == header.split()
    assert all(len(line) <= (room or 100) for line in found)
    assert found[1].endswith("…") == (room != 0)


def test_a_table_without_rows_is_its_header() -> None:
    assert [COLOUR.sub("", line) for line in lines(NAMES, [], room=80)] == ["NAME  N  M  NOTE"]


def test_a_long_name_of_a_limit_leaves_room_for_what_it_allows() -> None:
    row = ("payments", "a long name " * 8, 20, "100/min", 100, "by tasks", "20 at once, 100/min")
    head, line = (COLOUR.sub("", text) for text in lines(limits.COLUMNS, [row], room=80))
    assert head.split()[:5] == ["QUEUE", "LIMIT", "AT", "ONCE", "RATE"]
    assert {"20", "100/min"} <= set(line.split())
    assert len(line) <= 80


def test_what_is_blocked_is_among_the_counts_of_a_narrow_list() -> None:
    row = ("payments", 12_000, 100_000, 1_000, 10, 100, 1_000, 2, "1m 26s", "3 strikes, no workers")
    head, line = (COLOUR.sub("", text) for text in lines(queues.COLUMNS, [row], room=80))
    assert {"QUEUED", "BLOCKED", "ACTIVE", "DEAD", "NOTE"} <= set(head.split())
    assert line.endswith("no workers")


def test_a_colour_takes_no_room() -> None:
    columns = (Column("A"), Column("B"))
    found = lines(columns, [(Coloured("x", "red"), "y"), ("long", "y")], room=7)
    assert found[1] == "\x1b[31mx   \x1b[0m  y"


async def fail(url: str, tenant: str) -> None:
    app = App(url, tenant=tenant)

    @app.task(name="shop.mail.send", queue="mail")
    async def send() -> None:
        raise FailPermanently(SAID)

    async with app, running(Worker(app, lease=2)):
        job = await send.options(id=LONG_ID).enqueue()
        with pytest.raises(JobFailed):
            await job.result(timeout=patience(10))


@pytest.fixture
def failed(environment: dict[str, str]) -> None:
    asyncio.run(fail(environment["HEADRACE_REDIS_URL"], environment["HEADRACE_TENANT"]))


@pytest.mark.usefixtures("failed")
@pytest.mark.parametrize(
    ("columns", "words", "headers"),
    [
        (80, ("dead", "list"), "ID WHEN NOTE"),
        (120, ("dead", "list"), "ID QUEUE TASK WHEN NOTE"),
        (80, ("job", "list"), "ID TASK STATE WHEN"),
        (120, ("job", "list"), "ID QUEUE TASK STATE WHEN NOTE"),
        (80, ("dead", "list", "--wide"), "ID QUEUE TASK STARTS FAILURES STALLS WHEN NOTE"),
    ],
)
async def test_f21_a_list_fits_the_terminal_and_says_why(
    environment: dict[str, str], columns: int, words: tuple[str, ...], headers: str
) -> None:
    """F21: with ids of 43 characters there are still the state, or the reason and the message."""
    with Terminal(*words, columns=columns, env=environment) as terminal:
        assert await terminal.ended() == 0
        shown = COLOUR.sub("", terminal.text).splitlines()
    assert shown[0].split() == headers.split()
    assert shown[1].startswith(LONG_ID)
    if "--wide" in words:
        assert shown[1].endswith(SAID)
    else:
        assert max(map(len, shown)) <= columns
        assert ("permanent: " in shown[1]) == ("NOTE" in headers)


@pytest.mark.usefixtures("failed", "redis_url")
@pytest.mark.parametrize(
    ("variables", "is_coloured"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
    ],
)
async def test_f31_a_terminal_gets_colours_unless_it_is_told_otherwise(
    environment: dict[str, str], variables: dict[str, str], *, is_coloured: bool
) -> None:
    """F31: as no-color.org and force-color.org ask."""
    with Terminal("job", "list", env={**environment, **variables}) as terminal:
        assert await terminal.ended() == 0
        assert ("\x1b[31mfailed" in terminal.text) is is_coloured
        assert ("\x1b" in terminal.text) is is_coloured


@pytest.mark.usefixtures("failed")
def test_f31_a_pipe_gets_colours_only_where_they_are_forced(here: Cli) -> None:
    """F31: a program reads what is piped."""
    assert "\x1b" not in here("job", "list").out
    assert "\x1b[31mfailed" in here("job", "list", env={"FORCE_COLOR": "1"}).out
    assert "\x1b" not in here("job", "list", "-o", "json", env={"FORCE_COLOR": "1"}).out

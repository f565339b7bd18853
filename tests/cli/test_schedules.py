"""``headrace schedule``: which there are, and which there can't be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.schedules import FAR, add, ids


def test_schedules_are_listed_in_the_order_of_their_ids(cli: Cli, here: Cli) -> None:
    ran = here("schedule", "list")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("There are no such schedules in tenant ")
    assert ids(here) == []
    add(here, schedule_id="b")
    add(here, "--paused", "--every", "30s", schedule_id="a")
    add(here, "--at", FAR, schedule_id="c\t".strip())
    assert ids(here) == ["a", "b", "c"]
    ran = cli("schedule", "list")
    header, *lines = ran.out.splitlines()
    assert header.split() == ["SCHEDULE", "TASK", "QUEUE", "TIMING", "NEXT", "LAST", "NOTE"]
    assert [line.split()[0] for line in lines] == ["a", "b", "c"]
    assert "every 30 s" in lines[0]
    assert lines[0].endswith("paused")
    assert "cron 0 9 * * mon" in lines[1]
    ran = here("schedule", "list", "-n", "2", "-o", "json")
    assert [one["id"] for one in ran.json] == ["a", "b"]
    assert ran.err == "There are more than these 2: raise --limit, or narrow it down.\n"


def test_the_list_is_narrowed_down_by_task(here: Cli) -> None:
    add(here, schedule_id="a")
    here("schedule", "add", "b", "shop.pack", "-q", "x", "--every", "5")
    assert ids(here, "--task", "shop.pack") == ["b"]
    assert ids(here, "-t", "shop.pac") == []


@pytest.mark.parametrize(
    "words",
    [
        ("show", "nope"),
        ("history", "nope"),
        ("edit", "nope", "--priority", "3"),
        ("pause", "nope"),
        ("resume", "nope"),
        ("trigger", "nope"),
        ("delete", "nope", "--yes"),
    ],
    ids=lambda words: words[0],
)
def test_a_schedule_that_is_not_there_is_exit_code_1(here: Cli, words: tuple[str, ...]) -> None:
    ran = here("schedule", *words)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("Error: there is no schedule 'nope'")
    assert "(this is tenant " in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("name", ["", "a\nb", "é" * 101], ids=["empty", "control", "long"])
def test_an_id_that_can_not_be_is_refused_by_every_command(here: Cli, name: str) -> None:
    for words in (
        ("add", name, "t", "-q", "x", "--every", "5"),
        ("show", name),
        ("edit", name, "--priority", "1"),
        ("pause", name),
        ("trigger", name),
        ("delete", name, "--yes"),
        ("history", name),
    ):
        ran = here("schedule", *words, "--url", "redis://127.0.0.1:1")
        assert (ran.code, ran.out) == (2, ""), ran
        assert "schedule id" in ran.err


LOOKING = (
    ("list",),
    ("show", "x"),
    ("history", "x"),
    ("edit", "x", "--priority", "1"),
    ("pause", "x"),
    ("resume", "x"),
    ("trigger", "x"),
    ("delete", "x", "--yes"),
)


@pytest.mark.parametrize("words", LOOKING, ids=lambda words: words[0])
def test_a_storage_that_can_not_be_reached_is_exit_code_3(
    here: Cli, tmp_path: Path, words: tuple[str, ...]
) -> None:
    for url in ("redis://127.0.0.1:1", f"file://{tmp_path}/nowhere"):
        ran = here("schedule", *words, "--url", url)
        assert (ran.code, ran.out) == (3, ""), ran
        assert ran.err.count("\n") == 1
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("cli_url", ["file"], indirect=True)
def test_the_first_schedule_makes_the_storage(here: Cli, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/new"
    ran = here("schedule", "add", "x", "t", "-q", "x", "--every", "5", "--url", url, "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json == here("schedule", "list", "--url", url, "-o", "json").json[0]


@pytest.mark.parametrize("words", LOOKING, ids=lambda words: words[0])
def test_a_broken_app_stops_nobody_who_says_where(
    here: Cli, environment: dict[str, str], words: tuple[str, ...]
) -> None:
    add(here, schedule_id="x")
    where = ("--url", environment["HEADRACE_REDIS_URL"], "--tenant", environment["HEADRACE_TENANT"])
    ran = here("schedule", *words, *where, env={"HEADRACE_APP": "no.such.module"})
    assert ran.code == 0, ran

"""``headrace schedule``: pause and resume, trigger, delete."""

from __future__ import annotations

import pytest
from anyio import to_thread

from tests.cli.conftest import Cli
from tests.cli.schedules import add, ids, shown
from tests.support.terminal import Terminal


def test_a_pause_lasts_until_it_is_resumed(here: Cli) -> None:
    add(here)
    add(here, schedule_id="tuesdays")
    ran = here("schedule", "pause", "mondays", "tuesdays")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "Schedule mondays is paused.\nSchedule tuesdays is paused.\n"
    assert shown(here)["is_paused"] is True
    assert here("schedule", "resume", "mondays").out == "Schedule mondays is resumed.\n"
    assert [shown(here, one)["is_paused"] for one in ("mondays", "tuesdays")] == [False, True]


def test_nothing_is_changed_where_one_of_several_is_not_there(here: Cli) -> None:
    add(here)
    for words in (("pause",), ("delete", "--yes")):
        ran = here("schedule", *words, "mondays", "nope")
        assert (ran.code, ran.out) == (1, "")
    assert shown(here)["is_paused"] is False


def test_a_trigger_enqueues_the_job_at_once_and_is_in_the_history(cli: Cli, here: Cli) -> None:
    add(here, "--args", '{"to": "a@b.c"}', "--paused")
    assert here("schedule", "history", "mondays", "-o", "json").json == []
    ran = here("schedule", "trigger", "mondays")
    assert (ran.code, ran.err) == (0, "")
    [job] = here("job", "list", "-o", "json").json
    assert job["id"].startswith("mondays:triggered:")
    assert ran.out == f"Job {job['id']} of shop.send is queued in mail.\n"
    assert here("job", "show", job["id"], "-o", "json").json["args"] == {"to": "a@b.c"}
    [entry] = here("schedule", "history", "mondays", "-o", "json").json
    assert (entry["outcome"], entry["job_id"]) == ("triggered", job["id"])
    lines = cli("schedule", "history", "mondays").out.splitlines()
    assert lines[0].split() == ["OCCURRENCE", "(UTC)", "FIRED", "OUTCOME", "COUNT", "JOB"]
    assert "triggered" in lines[1]
    document = here("schedule", "trigger", "mondays", "-o", "json").json
    assert (document["schedule"], document["task"]) == ("mondays", "shop.send")
    assert document["job_id"] != job["id"]
    assert shown(here)["last_job_id"] == document["job_id"]


def test_a_deletion_shows_what_it_does_and_asks(here: Cli) -> None:
    for name in ("a", "b", "c"):
        add(here, schedule_id=name)
    ran = here("schedule", "delete", "a", "b")
    assert (ran.code, ran.out) == (2, "")
    assert "This will delete 2 schedules" in ran.err
    assert "pass --yes" in ran.err
    ran = here("schedule", "delete", "a", "b", "--dry-run")
    assert (ran.code, ran.out) == (0, "Dry run: nothing was changed.\n")
    assert ids(here) == ["a", "b", "c"]
    ran = here("schedule", "delete", "a", "b", "a", "--yes")
    assert (ran.code, ran.out, ran.err) == (0, "2 schedules deleted.\n", "")
    ran = here("schedule", "delete", "c", "--yes", "-o", "json")
    assert ran.json == {"matched": 1, "changed": 1, "dry_run": False}
    assert ids(here) == []


@pytest.mark.parametrize(
    ("answer", "code", "left"), [("n\n", 1, ["mondays"]), ("y\n", 0, [])], ids=["no", "yes"]
)
async def test_a_deletion_waits_for_the_answer(
    cli: Cli, environment: dict[str, str], answer: str, code: int, left: list[str]
) -> None:
    await to_thread.run_sync(add, cli)
    with Terminal("schedule", "delete", "mondays", env=environment) as terminal:
        await terminal.shows("Delete 1 schedule? [y/N]")
        terminal.enter(answer)
        assert await terminal.ended() == code
    assert await to_thread.run_sync(ids, cli) == left

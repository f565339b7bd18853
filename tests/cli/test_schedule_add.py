"""``headrace schedule add``: a schedule is stored by its task's name, or of an app."""

from __future__ import annotations

import pytest

from tests.cli.conftest import APP, Cli
from tests.cli.schedules import FAR, add, shown


def test_a_schedule_is_added_by_its_tasks_name_and_shown(cli: Cli, here: Cli) -> None:
    ran = cli(
        "schedule", "add", "mondays", "shop.send", "-q", "mail", "--args", '{"to": "a@b.c"}',
        "--cron", "0 9 * * mon", "--tz", "America/New_York", "--catch-up", "latest",
        "--jitter", "5m", "--overlap", "skip", "--start", "2030-01-01T00:00Z", "--end", FAR,
        "--priority", "8", "--max-attempts", "7", "--attempt-timeout", "90s", "--header", "a=b",
        "--expires", "1h",
    )  # fmt: skip
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Schedule mondays is added: every Monday at 09:00, New York time; ")
    found = shown(here)
    assert (found["id"], found["task"], found["queue"]) == ("mondays", "shop.send", "mail")
    assert (found["args"], found["priority"]) == ({"to": "a@b.c"}, 8)
    assert found["timing"] == "cron 0 9 * * mon America/New_York"
    assert (found["catch_up"], found["jitter_ms"], found["overlap"]) == ("latest", 300_000, "skip")
    assert (found["start_at"], found["end_at"]) == ("2030-01-01T00:00:00Z", FAR)
    assert found["next_at"] == "2030-01-07T14:00:00Z"
    assert (found["is_paused"], found["set_by"], found["app"]) == (False, "operator", None)
    options = found["options"]
    assert (options["max_attempts"], options["timeout_ms"]) == (7, 90_000)
    assert options["headers"] == {"a": "b"}
    text = cli("schedule", "show", "mondays").out
    for told in (
        "every Monday at 09:00, New York time", "2030-01-07 14:00:00 UTC", "latest", "shop.send",
        '{"to":"a@b.c"}', "5m", "mail",
    ):  # fmt: skip
        assert told in text


def test_with_an_app_the_tasks_own_queue_and_names_are_used(here: Cli) -> None:
    ran = here("schedule", "add", "sum", "add", "-A", APP, "--args", "[1, 2]", "--every", "30s")
    assert (ran.code, ran.err) == (0, "")
    found = shown(here, "sum")
    assert (found["queue"], found["args"]) == ("quick", {"a": 1, "b": 2})
    assert (found["timing"], found["catch_up"], found["jitter_ms"]) == ("every 30 s", "skip", 0)


def test_an_id_that_is_there_is_not_added_again(here: Cli) -> None:
    add(here)
    ran = here("schedule", "add", "mondays", "t", "-q", "x", "--every", "5")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("Error: there is a schedule 'mondays' already")
    assert "headrace schedule edit" in ran.err
    assert shown(here)["task"] == "shop.send"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("t", "-q", "x"), "say when: --cron, --every or --at"),
        (("t", "-q", "x", "--cron", "* * * * *", "--every", "5"), "say one of --cron, --every"),
        (("t", "-q", "x", "--every", "5", "--tz", "UTC"), "--tz goes with --cron"),
        (("t", "-q", "x", "--cron", "0 0 31 2 *"), "0 0 31 2 *"),
        (("t", "-q", "x", "--every", "50ms"), "0.1 seconds"),
        (("t", "-q", "x", "--at", "2020-01-01T00:00Z"), "2020-01-01"),
        (("t", "-q", "x", "--at", "2030-01-01T00:00"), "is not an instant with a zone"),
        (("t", "-q", "x", "--every", "5", "--jitter", "6"), "jitter=6 s"),
        (("t", "-q", "x", "--every", "5", "--catch-up", "all"), "'all' is no rule"),
        (("t", "-q", "x", "--every", "5", "--catch-up", "2000"), "catch_up=2000"),
        (("t", "-q", "x", "--every", "5", "--overlap", "no"), "'no' is not one of"),
        (("t", "-q", "x", "--every", "5", "--priority", "12"), "priority=12"),
        (("t", "-q", "x", "--every", "5", "--args", "[1]"), "need --app"),
        (("t", "--every", "5"), "--queue"),
        (("t", "-q", "x", "--every", "5", "--import", "m"), "--import goes with --app"),
        (("nope", "-A", APP, "--every", "5"), "the app has no task 'nope'"),
        (("add", "-A", APP, "--args", '["one"]', "--every", "5"), "Expected `int`, got `str`"),
    ],
    ids=lambda words: "-".join(words).replace(" ", "") if isinstance(words, tuple) else None,
)
def test_what_can_not_be_added_is_told_in_one_line_before_any_connection(
    here: Cli, words: tuple[str, ...], told: str
) -> None:
    ran = here("schedule", "add", "x", *words, "--url", "redis://127.0.0.1:1")
    assert (ran.code, ran.out) == (2, ""), ran
    assert ran.err.startswith("Error: ")
    assert ran.err.count("\n") == 1
    assert told in ran.err

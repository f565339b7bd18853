"""``headrace queue configure``: what a queue keeps is set and shown."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Cli

KEEPS = ("keeps_history", "keeps_dead", "keeps_dead_ms", "keeps_events", "keeps_events_cap")


def kept(here: Cli, *words: str) -> list[int]:
    document = here("queue", "configure", "mail", *words, "-o", "json").json
    return [document[name] for name in KEEPS]


def test_what_is_said_is_set_and_the_rest_stays(here: Cli) -> None:
    defaults = [100_000, 10_000, 30 * 24 * 3_600_000, 5_000, 50_000]
    assert kept(here) == defaults
    assert kept(here, "--events-cap", "200000") == [*defaults[:4], 200_000]
    assert kept(here, "--history", "7", "--dead-letters", "6", "--dead-letter-ttl", "2h") == [
        *(7, 6, 7_200_000, 5_000, 200_000)
    ]
    assert kept(here, "--events", "9")[3:] == [9, 200_000]


def test_it_is_shown_in_words(here: Cli) -> None:
    ran = here("queue", "configure", "mail", "--events-cap", "70000")
    assert (ran.code, ran.err) == (0, "")
    assert [" ".join(line.split()) for line in ran.out.splitlines()] == [
        "Queue 'mail' keeps",
        "completed or cancelled 100,000",
        "dead letters 10,000, for 30d",
        "entries of events 5,000",
        "for readers of them 70,000",
        "jobs that run at once no bound",
        "jobs that wait at once no bound",
    ]


@pytest.mark.parametrize(
    "words",
    [
        ("a b",),
        ("mail", "--events-cap", "0"),
        ("mail", "--events-cap", "10000001"),
        ("mail", "--events", "many"),
        ("mail", "--dead-letter-ttl", "0.1s"),
    ],
    ids=["name", "zero", "too-many", "no-number", "too-short"],
)
def test_what_is_out_of_bounds_is_wrong_usage(here: Cli, words: tuple[str, ...]) -> None:
    ran = here("queue", "configure", *words)
    assert (ran.code, ran.out) == (2, "")


def test_a_task_for_its_dead_letters_is_named_and_taken_back(here: Cli) -> None:
    def shown(*words: str) -> str | None:
        document = here("queue", "configure", "mail", *words, "-o", "json").json
        name: str | None = document["on_failed"]
        return name

    assert shown() is None
    assert shown("--on-failed", "shop.refund") == "shop.refund"
    assert shown("--history", "7") == "shop.refund"
    assert (
        "a dead letter brings    a job of shop.refund\n" in here("queue", "configure", "mail").out
    )
    assert shown("--no-on-failed") is None
    for words in (["--on-failed", "a\tb"], ["--on-failed", "a", "--no-on-failed"]):
        assert here("queue", "configure", "mail", *words).code == 2


def test_the_share_of_lower_priorities_is_set_and_taken_back(here: Cli) -> None:
    ran = here("queue", "configure", "mail", "--aging", "20")
    assert "of a lower priority     one of 20 jobs\n" in ran.out
    assert here("queue", "configure", "mail", "-o", "json").json["aging"] == 20
    assert "lower priority" not in here("queue", "configure", "mail", "--aging", "0").out
    assert here("queue", "configure", "mail", "--aging", "1").code == 2

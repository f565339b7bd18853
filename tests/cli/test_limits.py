"""``headrace queue limits``, ``limit`` and ``gate``, and the bounds of ``queue configure``."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Cli


def test_a_limit_is_set_shown_and_reset(here: Cli) -> None:
    ran = here("queue", "limit", "mail", "stripe", "--concurrency", "20", "--rate", "10/min")
    assert ran.code == 0
    assert ran.err.startswith("Note: no task has declared it yet")
    assert ran.out == (
        "Limit 'stripe' of queue 'mail' allows 20 at once and 10/min with a burst of 10.\n"
    )
    here("queue", "limit", "mail", "smtp", "--rate", "5/2h", "--burst", "1")
    heading, *lines = here("queue", "limits").out.splitlines()
    assert heading.split()[:4] == ["QUEUE", "LIMIT", "AT", "ONCE"]
    assert [line.split() for line in lines] == [
        ["mail", "smtp", "-", "5/2h", "1", "by", "hand", "-"],
        ["mail", "stripe", "20", "10/min", "10", "by", "hand", "-"],
    ]
    [smtp, stripe] = here("queue", "limits", "mail", "-o", "json").json
    assert stripe == {
        "queue": "mail",
        "name": "stripe",
        "concurrency": 20,
        "rate": "10/min",
        "burst": 10,
        "is_set": True,
        "declared": "",
    }
    ran = here("queue", "limit", "mail", "stripe", "--reset")
    assert ran.out == ("Limit 'stripe' of queue 'mail' holds nobody up: no task has declared it.\n")
    assert here("queue", "limits", "mail", "-o", "json").json == [smtp]


def test_where_there_are_no_limits_that_is_said(here: Cli) -> None:
    ran = here("queue", "limits", "mail")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("No limit of mail is known in ")


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--concurrency", "0"),
        ("--rate", "10"),
        ("--burst", "5"),
        ("--reset", "--concurrency", "1"),
    ],
    ids=["nothing", "zero", "no-period", "burst", "both"],
)
def test_a_limit_that_allows_nothing_sensible_is_refused(here: Cli, words: tuple[str, ...]) -> None:
    ran = here("queue", "limit", "mail", "stripe", *words)
    assert ran.code != 0
    said = "--concurrency, --rate or both, or else --reset"
    assert (said if not words or "--reset" in words else words[0].strip("-")) in ran.err
    assert here("queue", "limits", "-o", "json").json == []


def test_a_queue_says_how_many_run_and_wait_at_once(here: Cli) -> None:
    ran = here("queue", "configure", "mail", "--max-active", "5", "--max-length", "1")
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert lines[-2:] == ["jobs that run at once 5", "jobs that wait at once 1"]
    assert here("enqueue", "t", "-q", "mail").code == 0
    ran = here("enqueue", "t", "-q", "mail")
    assert ran.code != 0
    assert "takes 1 jobs that wait" in ran.err
    ran = here("queue", "configure", "mail", "--max-length", "0")
    assert "no bound" in ran.out
    assert here("enqueue", "t", "-q", "mail").code == 0


def test_a_job_names_the_keys_of_its_limits(here: Cli) -> None:
    here("queue", "limit", "mail", "stripe", "--concurrency", "1")
    words = ("enqueue", "send", "-q", "mail", "--limit-key", "stripe=", "--limit-key", "to=a=b")
    assert here(*words, "--id", "x", "-o", "json").json["outcome"] == "queued"
    assert here(*words, "--id", "y", "-o", "json").json["outcome"] == "blocked"
    job = here("job", "show", "y", "-o", "json").json
    assert (job["limits"], job["blocked_by"]) == ({"stripe": "", "to": "a=b"}, "stripe")


def test_a_key_that_is_said_twice_is_refused(here: Cli) -> None:
    words = ("enqueue", "send", "-q", "mail", "--limit-key", "stripe=eu", "--limit-key")
    ran = here(*words, "stripe=us")
    assert (ran.code, "--limit-key says 'stripe' twice: say it once" in ran.err) == (2, True)
    assert here(*words, "stripe=eu").code == 0


def test_a_job_that_waits_for_its_turn_says_so(here: Cli) -> None:
    words = ("enqueue", "t", "-q", "x", "--fair-key")
    assert here(*words, "42", "--id", "first").code == 0
    assert "others have their turn" in here(*words, "42", "--id", "second").out
    assert here(*words, "7", "--id", "third").code == 0
    assert "blocked until its key has its turn" in here("job", "show", "second").out
    names = ("first", "second", "third")
    documents = [here("job", "show", name, "-o", "json").json for name in names]
    assert [document["fair_key"] for document in documents] == ["42", "42", "7"]
    assert [document["blocked_by"] for document in documents] == [None, "fair", None]


def test_a_key_that_is_none_is_refused(here: Cli) -> None:
    ran = here("enqueue", "t", "-q", "x", "--fair-key", "x" * 257)
    assert ran.code == 2
    assert "fair_key" in ran.err


def test_a_key_of_a_limit_shows_who_runs_and_who_waits(here: Cli) -> None:
    here("queue", "limit", "mail", "to", "--concurrency", "2", "--rate", "5/h")
    for key in ("ada", "ada", "ada", "bob"):
        here("enqueue", "send", "-q", "mail", "--limit-key", f"to={key}")
    ran = here("queue", "gate", "mail", "to", "ada")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "Key 'ada' of limit 'to' of queue 'mail': 0 running, 2 waiting for a worker, "
        "1 waiting for room; of its rate 5 may start now.\n"
    )
    assert here("queue", "gate", "mail", "to", "bob", "-o", "json").json == {
        "queue": "mail",
        "name": "to",
        "key": "bob",
        "ready": 1,
        "active": 0,
        "blocked": 0,
        "tokens": 5,
    }


def test_a_limit_for_all_jobs_has_no_key(here: Cli) -> None:
    here("queue", "limit", "mail", "stripe", "--concurrency", "1")
    for _ in range(2):
        here("enqueue", "send", "-q", "mail", "--limit-key", "stripe=")
    ran = here("queue", "gate", "mail", "stripe")
    assert ran.out == (
        "Limit 'stripe' of queue 'mail': 0 running, 1 waiting for a worker, 1 waiting for room.\n"
    )


def test_a_limit_of_which_nothing_is_known_is_said(here: Cli) -> None:
    here("enqueue", "send", "-q", "mail")
    ran = here("queue", "gate", "mail", "strip")
    assert (ran.code, ran.err) == (
        0,
        "Note: nothing is known of a limit 'strip' in queue 'mail'.\n",
    )
    assert here("queue", "gate", "mail", "stripe", "a\tb").code == 2

"""``headrace job why``, and where ``job show`` points to it."""

from __future__ import annotations

from tests.cli.conftest import Cli

ENQUEUE = ("enqueue", "send", "-q", "mail")


def test_it_tells_people_all_that_is_in_the_way(here: Cli) -> None:
    here(*ENQUEUE, "--id", "first")
    here(*ENQUEUE, "--id", "second")
    here("queue", "pause", "mail")
    ran = here("job", "why", "second")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "Job second of send in mail is queued:\n"
        "- Queue mail is paused: nothing of it is claimed.\n"
        "  Resume it: headrace queue resume mail\n"
        "- No worker of queue mail is alive.\n"
        "  Start one that serves it: headrace worker MODULE:ATTR --queues mail\n"
        "- 1 other job of its lane stands before it: those of higher priority, and those "
        "that came earlier.\n"
        "  Wait; or start more workers, or enqueue what is urgent with a higher priority. "
        "headrace workers shows ACTIVE of SLOTS.\n"
    )


def test_it_tells_programs_the_same(here: Cli) -> None:
    here(*ENQUEUE, "--id", "first", "--delay", "1h")
    told = here("job", "why", "first", "-o", "json").json
    assert (told["id"], told["queue"], told["task"], told["state"]) == (
        *("first", "mail", "send"),
        "scheduled",
    )
    assert [reason["kind"] for reason in told["reasons"]] == ["no_worker", "time"]
    assert told["reasons"][1]["until"] > told["at"]


def test_the_beginning_of_an_id_is_enough_and_one_that_is_not_there_is_told(here: Cli) -> None:
    here(*ENQUEUE, "--id", "parcel-17")
    assert here("job", "why", "parc").out.startswith("Job parcel-17 of send in mail is queued:\n")
    ran = here("job", "why", "letter")
    assert (ran.code, ran.out) == (1, "")
    assert "there is no job 'letter' in any queue of tenant" in ran.err
    ran = here("job", "why", "parcel-17", "-q", "other")
    assert (ran.code, "in queue 'other'" in ran.err) == (1, True)


def test_show_points_to_it_while_a_job_waits(here: Cli) -> None:
    here(*ENQUEUE, "--id", "first")
    assert "why       headrace job why first\n" in here("job", "show", "first").out
    here("job", "cancel", "first")
    assert "job why" not in here("job", "show", "first").out

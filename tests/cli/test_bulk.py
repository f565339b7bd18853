"""Commands that change many jobs: preview, question, exactly those; and nothing without a yes."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import sys

import pytest

from headrace import App, FailPermanently, Worker
from headrace.testing import running
from tests.cli.conftest import Cli
from tests.support.processes import ROOT
from tests.support.redis_server import RedisServer
from tests.support.until import patience


async def stock(url: str, tenant: str) -> None:
    """Make seven dead letters of two tasks and queues, and jobs that wait."""
    app = App(url, tenant=tenant)

    async def fail() -> None:
        raise FailPermanently("no")

    one = app.task(name="one", queue="mail")(fail)
    two = app.task(name="two", queue="mail")(fail)
    async with app, running(Worker(app, ["mail", "other"], lease=2)):
        jobs = [await one.options(id=f"one{at}").enqueue() for at in range(5)]
        jobs.append(await two.options(id="two").enqueue())
        jobs.append(await one.options(id="far", queue="other").enqueue())
        for job in jobs:
            with pytest.raises(Exception, match="no"):
                await job.result(timeout=patience(10))
    async with app:
        for at in range(3):
            await one.options(id=f"wait{at}").enqueue()
        await two.options(id="later", delay=3600).enqueue()


@pytest.fixture
def stocked(environment: dict[str, str]) -> None:
    asyncio.run(stock(environment["HEADRACE_REDIS_URL"], environment["HEADRACE_TENANT"]))


pytestmark = pytest.mark.usefixtures("stocked")


def ids(here: Cli, *words: str) -> set[str]:
    return {job["id"] for job in here("job", "list", "-o", "json", *words).json}


DEAD = {"one0", "one1", "one2", "one3", "one4", "two", "far"}


@pytest.mark.parametrize(
    "words",
    [
        ("queue", "purge", "mail"),
        ("dead", "purge", "--all"),
        ("dead", "purge", "two"),
        ("dead", "redrive", "--all"),
        ("dead", "redrive", "--task", "one"),
        ("job", "cancel", "wait0", "wait1"),
        ("job", "cancel", "--queue", "mail", "--all"),
    ],
)
def test_without_a_terminal_nothing_is_changed_unless_yes_is_said(
    here: Cli, words: tuple[str, ...]
) -> None:
    before = here("job", "list", "-o", "json").json
    ran = here(*words)
    assert (ran.code, ran.out) == (2, "")
    assert "there is no terminal to ask: pass --yes" in ran.err
    ran = here(*words, "--dry-run")
    assert (ran.code, ran.out) == (0, "Dry run: nothing was changed.\n")
    assert here("job", "list", "-o", "json").json == before


def test_a_preview_has_the_exact_count_and_the_first_ids(here: Cli) -> None:
    ran = here("dead", "purge", "--all", "--dry-run")
    lines = ran.err.splitlines()
    assert lines[0] == "This will delete 7 dead letters of mail, other:"
    assert {line.split()[0] for line in lines[1:6]} <= DEAD
    assert lines[6:] == ["  … and 2 more"]
    ran = here("dead", "purge", "--all", "--dry-run", "-o", "json")
    assert ran.json == {"matched": 7, "changed": 0, "dry_run": True}


def test_dead_letters_are_queued_again_by_id_task_or_all(cli: Cli, here: Cli) -> None:
    assert cli("dead", "redrive", "one0", "one1").out == "2 dead letters queued again.\n"
    assert here("dead", "redrive", "--task", "two", "--yes").out == "1 dead letter queued again.\n"
    assert ids(here, "-s", "failed") == {"one2", "one3", "one4", "far"}
    ran = here("dead", "redrive", "--all", "--queue", "mail", "-y", "-o", "json")
    assert ran.json == {"matched": 3, "changed": 3, "dry_run": False}
    assert ids(here, "-s", "failed") == {"far"}


def test_one_dead_letter_is_retried(here: Cli) -> None:
    assert here("job", "retry", "far").out == "Job far is queued again in other.\n"
    ran = here("job", "retry", "far")
    assert ran.code == 1
    assert "job 'far' of queue 'other' is queued and no dead letter" in ran.err


def test_dead_letters_are_purged_by_id_or_all_and_nothing_else_is(cli: Cli, here: Cli) -> None:
    assert here("dead", "purge", "wait0", "--yes").code == 1
    assert cli("dead", "purge", "far", "two", "--yes").out == "2 dead letters deleted.\n"
    assert here("dead", "purge", "--all", "--yes").out == "5 dead letters deleted.\n"
    assert ids(here) == {"wait0", "wait1", "wait2", "later"}


def test_a_purge_deletes_what_waits_and_keeps_dead_letters(cli: Cli, here: Cli) -> None:
    assert here("queue", "purge", "mail", "--task", "two", "-y").out == "1 job deleted.\n"
    assert cli("queue", "purge", "mail", "--yes").out == "3 jobs deleted.\n"
    assert ids(here) == DEAD
    assert here("queue", "purge", "mail").out == "0 jobs deleted.\n"


def test_a_purge_deletes_what_a_limit_holds_up(here: Cli) -> None:
    here("queue", "limit", "held", "one", "--concurrency", "1")
    for _ in range(3):
        here("enqueue", "t", "-q", "held", "--limit-key", "one=x")
    assert "3 jobs deleted" in here("queue", "purge", "held", "-y").out
    assert here("queue", "list", "-o", "json").json[0]["blocked"] == 0


@pytest.mark.parametrize(
    "words",
    [
        ("queue", "purge", "mail"),
        ("dead", "purge", "--all"),
        ("dead", "purge", *sorted(DEAD)),
        ("job", "cancel", "-q", "mail", "--all"),
        ("job", "cancel", "wait0", "wait1", "wait2", "later"),
        ("queue", "delete", "mail", "--force"),
    ],
    ids=["purge", "dead", "dead by id", "cancel", "cancel by id", "delete"],
)
def test_the_ids_of_what_is_gone_are_free(here: Cli, words: tuple[str, ...]) -> None:
    # BC-26: jobs that operators had deleted left the keys by which their ids were taken.
    before = {job["id"]: job["queue"] for job in here("job", "list", "-o", "json").json}
    assert here(*words, "--yes").code == 0
    standing = {
        job["id"] for job in here("job", "list", "-o", "json").json if job["state"] != "cancelled"
    }
    freed = set(before) - standing
    assert len(freed) >= 4
    for job_id in freed:
        ran = here("enqueue", "one", "-q", before[job_id], "--id", job_id, "-o", "json")
        assert ran.json["outcome"] == "queued"


def test_one_job_is_cancelled_without_a_question(cli: Cli, here: Cli) -> None:
    assert cli("job", "cancel", "wait0").out == "1 job cancelled.\n"
    assert here("job", "cancel", "-q", "mail", "--all", "-y").out == "3 jobs cancelled.\n"
    assert ids(here, "-s", "cancelled") == {"wait0", "wait1", "wait2", "later"}
    ran = here("job", "cancel", "far")
    assert (ran.code, ran.out) == (1, "0 jobs cancelled.\n")
    assert ran.err == "Error: 1 job had ended otherwise before\n"


def test_only_jobs_of_a_task_or_state_are_cancelled(here: Cli) -> None:
    here("job", "cancel", "-q", "mail", "--task", "one", "-y")
    assert ids(here, "-s", "cancelled") == {"wait0", "wait1", "wait2"}
    here("job", "cancel", "-q", "mail", "--all", "--state", "scheduled", "-y")
    assert ids(here, "-s", "scheduled") == set()


@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, 0), ("n\n", 1, 7), ("\n", 1, 7)])
def test_a_person_is_asked(
    here: Cli, environment: dict[str, str], answer: str, code: int, left: int
) -> None:
    person, terminal = pty.openpty()
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "headrace", "dead", "purge", "--all"],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            os.write(person, answer.encode())
            out, err = process.communicate(timeout=patience(30))
    finally:
        os.close(person)
        os.close(terminal)
    assert process.returncode == code
    assert "Delete 7 dead letters? [y/N]: " in err
    assert out == ("7 dead letters deleted.\n" if code == 0 else "")
    assert ("not confirmed: nothing was changed" in err) is (code == 1)
    assert len(ids(here, "-s", "failed")) == left


def test_a_paused_queue_says_so_until_it_is_resumed(cli: Cli, here: Cli) -> None:
    assert cli("queue", "pause", "mail", "other").out == (
        "Queue 'mail' is paused.\nQueue 'other' is paused.\n"
    )
    assert [queue["paused"] for queue in here("queue", "list", "-o", "json").json] == [True, True]
    assert here("queue", "resume", "mail").out == "Queue 'mail' is resumed.\n"
    assert [queue["paused"] for queue in here("queue", "list", "-o", "json").json] == [False, True]


def test_libraries_of_other_releases_are_removed_when_that_is_confirmed(
    here: Cli, redis_server: RedisServer
) -> None:
    source = (
        "#!lua name=headrace_0ther\nredis.register_function('headrace_0ther_f', function() end)"
    )
    with redis_server.client() as client:
        client.function_load(source, replace=True)
        words = ("doctor", "--remove-old-libraries")
        assert here(*words).code == 2
        ran = here(*words, "--dry-run")
        assert ran.out == "Dry run: nothing was changed.\n"
        assert "headrace_0ther" in ran.err
        assert client.function_list("headrace_0ther")
        ran = here(*words, "--yes", "-o", "json")
        assert "headrace_0ther" in ran.json["removed"]
        assert not client.function_list("headrace_0ther")
        assert here(*words).out == "There was nothing to remove.\n"

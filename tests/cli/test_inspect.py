"""What the reading commands print: tables for people, documents for programs."""

from __future__ import annotations

import asyncio
import re

import pytest
from anyio import to_thread

from headrace import App, Worker
from headrace.cli.workers import COLUMNS
from headrace.storage.connect import open_storage
from headrace.storage.incarnations import IncarnationInfo
from headrace.storage.values import CallId
from headrace.testing import EventLog, running
from tests.cli.conftest import Cli
from tests.support.until import patience


async def stock(url: str, tenant: str) -> None:
    """Make one queue with a job in most states, and another with one that waits."""
    app = App(url, tenant=tenant)

    @app.task(name="send", queue="mail", max_attempts=1)
    async def send(to: str) -> str:
        if to == "bad":
            raise ValueError("no\x1b[31m such\nbox")
        return to.upper()

    log = EventLog()
    async with app, running(Worker(app, lease=2, name="w1", concurrency=4, emit=log)):
        assert await send.options(id="done").enqueue_and_wait("ann") == "ANN"
        failed = await send.options(id="lost").enqueue("bad")
        await send.options(id="later", delay=3600).enqueue("eve")
        with pytest.raises(Exception, match="such"):
            await failed.result(timeout=patience(10))
    async with app:
        await send.options(id="next").enqueue("bob")
        await send.options(id="else", queue="other").enqueue("joe")


@pytest.fixture
def stocked(environment: dict[str, str]) -> None:
    asyncio.run(stock(environment["HEADRACE_REDIS_URL"], environment["HEADRACE_TENANT"]))


pytestmark = pytest.mark.usefixtures("stocked")


def test_queues_are_listed_with_counts_and_markers(cli: Cli, here: Cli) -> None:
    here("queue", "pause", "other")
    lines = cli("queue", "list").out.splitlines()
    headers = "QUEUE QUEUED BLOCKED SCHEDULED RETRYING ACTIVE DEAD WORKERS OLDEST NOTE"
    assert lines[0].split() == headers.split()
    assert lines[1].startswith("mail ")
    assert lines[1].split()[1:8] == ["1", "0", "1", "0", "0", "1", "0"]
    assert lines[1].endswith("  no workers")
    assert lines[2].endswith("  paused, no workers")
    assert lines[0].index("NOTE") == lines[1].index("no workers") == lines[2].index("paused")


def test_the_queue_documents_are_stable(here: Cli) -> None:
    mail, other = here("queue", "list", "-o", "json").json
    assert other["queue"] == "other"
    assert mail["oldest_ms"] >= 0
    assert {name: mail[name] for name in list(mail)[:10]} == {
        "queue": "mail",
        "paused": False,
        "queued": 1,
        "scheduled": 1,
        "retrying": 0,
        "active": 0,
        "blocked": 0,
        "dead": 1,
        "history": 1,
        "workers": 0,
    }
    (stats,) = here("queue", "stats", "mail", "-o", "json").json
    assert set(mail) == set(stats)
    assert set(list(stats)[10:]) == {
        "oldest_ms", "lanes", "last_minute",
        "keeps_history", "keeps_dead", "keeps_dead_ms", "keeps_events",
        "keeps_events_cap", "on_failed", "max_active", "max_length",
        "paused_tasks", "strikes", "weight", "aging",
    }  # fmt: skip
    assert stats["lanes"] == {}
    work = stats["last_minute"]
    counts = ("enqueued", "completed", "failed", "retried", "cancelled", "stalled")
    assert [work[name] for name in counts] == [4, 1, 1, 0, 0, 0]
    assert set(work["wait_ms"]) == set(work["run_ms"]) == {"p50", "p95", "p99"}


def test_stats_show_rates_percentiles_and_the_missing_workers(here: Cli) -> None:
    shown = here("queue", "stats", "mail").out
    assert shown.startswith("mail  (no workers)\n")
    for part in ("1 queued", "1 completed or cancelled, 1 dead", "4 enqueued (", "/s)", "p95"):
        assert part in shown


def test_tenants_are_listed_with_how_many_queues_they_have(
    here: Cli, environment: dict[str, str]
) -> None:
    assert here("enqueue", "t", "-q", "x", "--tenant", "neighbour").code == 0
    ours = environment["HEADRACE_TENANT"]
    assert here("tenant", "list", "-o", "json").json == [
        {"tenant": ours, "queues": 2},
        {"tenant": "neighbour", "queues": 1},
    ]
    lines = [line.split() for line in here("tenant", "list").out.splitlines()]
    assert lines == [["TENANT", "QUEUES"], [ours, "2"], ["neighbour", "1"]]


def test_a_queue_that_nobody_used_is_told_from_an_idle_one(here: Cli) -> None:
    ran = here("queue", "stats", "mial")
    assert ran.code == 0
    assert ran.err == "Note: no job or worker has used queue 'mial' yet.\n"


def test_a_job_is_shown_with_counts_times_arguments_result_and_errors(cli: Cli, here: Cli) -> None:
    shown = cli("job", "show", "lost").out
    head, error = shown.split("\n\n")
    said = dict(line.split(maxsplit=1) for line in head.splitlines())
    assert said["state"] == "failed (exhausted)"
    assert said["starts"] == "1"
    assert said["failures"] == "1 ended in an error"
    assert said["stalls"] == "0 ended with their worker"
    assert said["args"] == '{"to":"bad"}'
    assert " UTC (" in said["created"]
    assert error.startswith("error of start 1: ")
    assert "Traceback (most recent call last):" in error
    assert "raise ValueError(" in error
    assert "\x1b" not in shown
    assert '"ANN"' in here("job", "show", "done").out


def test_p4_workers_are_told_from_their_processes_and_from_the_command_that_runs_one(
    here: Cli,
) -> None:
    """P4: PROCESSES was of slots, where --processes is of workers."""
    assert "PROCESS SLOTS" in [column.name for column in COLUMNS]
    shown = " ".join(here("workers", "--help").out.split())
    assert 'It only lists them: "headrace worker" runs one.' in shown


def test_p5_a_job_names_its_worker_while_that_is_known(
    here: Cli, environment: dict[str, str]
) -> None:
    """P5: nobody knows an incarnation by its id."""

    async def claim() -> tuple[str, str | None]:
        storage = open_storage(
            environment["HEADRACE_REDIS_URL"], tenant=environment["HEADRACE_TENANT"]
        )
        info = IncarnationInfo(
            incarnation="here", name="w7", host="h", pid=1, version="0", concurrency=1,
            lease_ms=15_000, registered_ms=0,
        )  # fmt: skip
        await storage.register("mail", info)
        call = CallId("here", 1)
        await storage.claim("mail", call=call, nonce="here/1", slots={"default": 1})
        shown = await to_thread.run_sync(here, "job", "show", "next")
        document = await to_thread.run_sync(here, "job", "show", "next", "-o", "json")
        await storage.aclose()
        return shown.out, document.json["worker"]

    shown, name = asyncio.run(claim())
    assert re.search(r"^worker +w7$", shown, re.MULTILINE)
    assert name == "w7"
    assert re.search(r"^worker +gone$", here("job", "show", "lost").out, re.MULTILINE)


def test_p17_the_beginning_of_an_id_is_enough_where_it_is_the_only_one(here: Cli) -> None:
    """P17: an id has 26 characters, and nobody types them."""
    for job_id in ("01M8AAAA1", "01M8AAAA2", "01M8BBBB1"):
        assert here("enqueue", "send", "-q", "other", "--id", job_id).code == 0
    assert here("job", "show", "01M8B", "-o", "json").json["id"] == "01M8BBBB1"
    assert here("job", "show", "01M8AAAA1", "-o", "json").json["id"] == "01M8AAAA1"
    ran = here("job", "show", "01M8A")
    assert ran.code == 2
    assert ran.err == (
        "Error: several jobs begin with '01M8A' (01M8AAAA1, 01M8AAAA2): say more of it "
        "(see headrace job show --help)\n"
    )
    assert here("job", "show", "01M").code == 1
    assert here("job", "show", "01M8C").code == 1
    assert here("job", "cancel", "01M8B").code == 1


def test_the_job_document_is_stable(here: Cli) -> None:
    job = here("job", "show", "lost", "-o", "json").json
    # fmt: off
    assert list(job) == [
        "id", "queue", "task", "state", "priority", "lane", "failures", "stalls", "starts",
        "created_at", "changed_at", "due_at", "expires_at", "run_ms", "incarnation",
        "cancel_requested", "reason", "progress", "progress_text",
        "options", "args", "result", "errors", "put_back", "has_next", "on_failed",
        "limits", "fair_key", "blocked_by", "slots", "worker",
    ]
    # fmt: on
    assert (job["state"], job["reason"], job["failures"], job["starts"]) == (
        "failed",
        "exhausted",
        1,
        1,
    )
    (error,) = job["errors"]
    assert list(error) == ["start", "at", "type", "message", "traceback"]
    assert (error["type"], error["message"]) == ("ValueError", "no\x1b[31m such\nbox")
    assert here("job", "show", "done", "-o", "json").json["result"] == "ANN"


def test_jobs_are_listed_across_queues_and_states(here: Cli) -> None:
    def ids(*words: str) -> set[str]:
        return {job["id"] for job in here("job", "list", "-o", "json", *words).json}

    assert ids() == {"done", "lost", "later", "next", "else"}
    assert ids("-q", "other") == {"else"}
    assert ids("-s", "queued") == {"next", "else"}
    assert ids("-s", "failed", "-s", "scheduled", "-q", "mail") == {"lost", "later"}
    assert ids("-t", "nothing") == set()


def test_a_listing_that_is_cut_says_so(here: Cli) -> None:
    ran = here("job", "list", "--limit", "2")
    assert len(ran.out.splitlines()) == 3
    assert ran.err == "There are more than these 2: raise --limit, or narrow it down.\n"
    ran = here("job", "list", "--limit", "5")
    assert (len(ran.out.splitlines()), ran.err) == (6, "")


def test_an_id_in_several_queues_needs_its_queue(here: Cli) -> None:
    here("enqueue", "send", "-q", "other", "--id", "next")
    ran = here("job", "show", "next")
    assert ran.code == 2
    assert "job 'next' is in several queues (mail, other): say --queue" in ran.err
    assert here("job", "show", "next", "-q", "other", "-o", "json").json["queue"] == "other"


def test_f21_dead_letters_are_listed_with_their_reason_and_what_was_said(here: Cli) -> None:
    """F21: what failed is looked at for why."""
    ran = here("dead", "list")
    assert ran.out.splitlines()[1].split()[:4] == ["lost", "mail", "send", "1"]
    assert ran.out.splitlines()[1].endswith("  exhausted: ValueError: no\ufffd[31m such box")
    [letter] = here("dead", "list", "-o", "json").json
    assert (letter["error"], letter["message"]) == ("ValueError", "no\x1b[31m such\nbox")
    assert here("dead", "list", "--task", "other").err.startswith(
        "There are no such dead letters in "
    )


@pytest.mark.usefixtures("redis_url")
def test_the_doctor_looks_at_the_server(cli: Cli, here: Cli) -> None:
    ran = cli("doctor")
    assert ran.code == 0
    assert ran.out.splitlines()[0].split() == ["TOPIC", "LEVEL", "FINDING"]
    found = {line["topic"]: line["level"] for line in here("doctor", "-o", "json").json}
    assert found["eviction"] == "ok"
    assert {"version", "persistence", "clock", "functions"} <= set(found)

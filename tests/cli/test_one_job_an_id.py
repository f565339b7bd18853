"""Updates on the command line, and the job that follows the active one of its id."""

from __future__ import annotations

import asyncio

import pytest

from headrace.storage import open_storage
from headrace.testing.contract.steps import QUEUE, ContractIncarnation
from tests.cli.conftest import Cli

UPDATE = ("enqueue", "send", "-q", QUEUE, "--id", "x", "--on-conflict", "update")


@pytest.fixture
def claims_one(environment: dict[str, str], cli_url: str) -> object:
    """Return what makes the next job of the queue active."""

    async def claim() -> None:
        storage = open_storage(cli_url, tenant=environment["HEADRACE_TENANT"])
        worker = await ContractIncarnation(storage, "w1").register()
        await worker.claim_one()
        await storage.aclose()

    return lambda: asyncio.run(claim())


@pytest.fixture
def blocked(here: Cli, claims_one: object) -> Cli:
    """Have `x` be active, and another of its id follow."""
    assert callable(claims_one)
    here(*UPDATE, "--args", '{"n": 1}')
    claims_one()
    ran = here(*UPDATE, "--args", '{"n": 2}')
    told = "it was changed, or this one follows it"
    assert ran.out == f"Job x of send is there already in {QUEUE}: {told}.\n"
    return here


def test_a_waiting_job_is_changed_as_the_options_say(here: Cli) -> None:
    here(*UPDATE, "--args", '{"n": 1}', "--delay", "1h", "--max-attempts", "1")
    before = here("job", "show", "x", "-o", "json").json
    ran = here(*UPDATE, "--args", '{"n": 2}', "--update-run-at", "never", "-o", "json")
    assert ran.json["outcome"] == "updated"
    job = here("job", "show", "x", "-o", "json").json
    assert (job["args"], job["due_at"], job["options"]) == ({"n": 2}, before["due_at"], None)
    here(*UPDATE, "--args", '{"n": 3}', "--update-run-at", "if-earlier", "--keep-data")
    job = here("job", "show", "x", "-o", "json").json
    assert (job["args"], job["state"]) == ({"n": 2}, "queued")
    here(*UPDATE, "--max-attempts", "7", "--keep-retry", "--reset-counts")
    assert here("job", "show", "x", "-o", "json").json["options"] is None


def test_an_update_goes_with_an_id(here: Cli) -> None:
    ran = here("enqueue", "send", "-q", QUEUE, "--on-conflict", "update")
    assert (ran.code, "without an id" in ran.err) == (2, True)
    ran = here("enqueue", "send", "-q", QUEUE, "--id", "x", "--keep-data")
    assert (ran.code, "--keep-data goes with --on-conflict update" in ran.err) == (2, True)


def test_what_follows_is_shown_counted_and_listed(blocked: Cli) -> None:
    assert "active, another of its id follows" in blocked("job", "show", "x").out
    assert blocked("job", "show", "x", "-o", "json").json["has_next"] is True
    [stats] = blocked("queue", "stats", QUEUE, "-o", "json").json
    assert (stats["active"], stats["blocked"]) == (1, 1)
    assert "1 active, 1 blocked" in blocked("queue", "stats", QUEUE).out
    listed = blocked("job", "list", "-o", "json").json
    assert [(job["id"], job["state"]) for job in listed] == [("x", "active"), ("x", "blocked")]
    [job] = blocked("job", "list", "-s", "blocked", "-o", "json").json
    assert job["starts"] == 0


def test_what_follows_is_cancelled_alone(blocked: Cli) -> None:
    assert blocked("job", "cancel", "x", "--only-next").out == "1 job cancelled.\n"
    job = blocked("job", "show", "x", "-o", "json").json
    assert (job["state"], job["has_next"], job["cancel_requested"]) == ("active", False, False)
    ran = blocked("job", "cancel", "x", "--only-next")
    told = "Error: nothing is to run after the job: that is left as it is\n"
    assert (ran.code, ran.err) == (1, told)
    ran = blocked("job", "cancel", "-q", QUEUE, "--all", "--only-next")
    assert (ran.code, "--only-next goes with ids" in ran.err) == (2, True)


def test_a_queue_with_a_blocked_job_is_not_deleted_but_by_force(blocked: Cli) -> None:
    ran = blocked("queue", "delete", QUEUE, "--yes")
    assert (ran.code, "1 active, 1 blocked" in ran.err) == (1, True)
    assert blocked("queue", "delete", QUEUE, "--yes", "--force").code == 0
    assert blocked("job", "list", "-o", "json").json == []

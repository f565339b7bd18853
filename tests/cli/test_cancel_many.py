"""``headrace job cancel`` of those of a queue: in every state, and by state, age and number."""

from __future__ import annotations

import asyncio

import pytest

from headrace.job import JobState
from headrace.storage import open_storage
from headrace.testing.contract.cancel_in_states import STANDING, one_of_each
from headrace.testing.contract.steps import QUEUE, ContractClient, ContractIncarnation
from tests.cli.conftest import Cli

CANCEL = ("job", "cancel", "--queue", QUEUE)
BEFORE = {name: state for name, state in STANDING.items() if state is not None}


@pytest.fixture
def filled(here: Cli, environment: dict[str, str], cli_url: str) -> Cli:
    """Have a job in each state, and another one that follows ``x``."""

    async def fill() -> None:
        storage = open_storage(cli_url, tenant=environment["HEADRACE_TENANT"])
        worker = await ContractIncarnation(storage, "w1").register()
        await one_of_each(ContractClient(storage), worker)
        await storage.aclose()

    asyncio.run(fill())
    assert standing(here) == BEFORE
    return here


def standing(here: Cli) -> dict[str, str]:
    """Return how the jobs stand, but for what follows one."""
    rows = here("job", "list", "-o", "json").json
    return {row["id"]: row["state"] for row in rows if (row["id"], row["state"]) != FOLLOWS}


FOLLOWS = ("x", JobState.BLOCKED)


def test_all_are_cancelled_whatever_they_wait_for(filled: Cli) -> None:
    ran = filled(*CANCEL, "--all", "--dry-run")
    assert ran.err.startswith(f"This will cancel 8 jobs of {QUEUE}:\n")
    assert standing(filled) == BEFORE
    ran = filled(*CANCEL, "--all", "--yes")
    assert ran.out == "5 jobs cancelled, 3 active jobs asked to stop.\n"
    left = {name: state for name, state in standing(filled).items() if state != "cancelled"}
    assert left == dict.fromkeys(("active", "x", "holder"), "active") | {"done": "completed"}
    assert filled("job", "show", "x", "-o", "json").json["has_next"] is False


@pytest.mark.parametrize("state", ["blocked", "queued", "active"])
def test_those_in_other_states_are_spared(filled: Cli, state: str) -> None:
    ran = filled(*CANCEL, "--task", "send", "--state", state, "-y", "-o", "json")
    matched = {"blocked": 2, "queued": 1, "active": 3}[state]
    is_active = state == "active"
    assert ran.json == {
        "matched": matched,
        "changed": matched,
        "dry_run": False,
        "cancelled": 0 if is_active else matched,
        "requested": matched if is_active else 0,
        "finished": 0,
        "not_found": 0,
    }
    assert standing(filled) == {
        name: "cancelled" if before == state and not is_active else before
        for name, before in BEFORE.items()
    }
    job = filled("job", "show", "x", "-o", "json").json
    assert (job["has_next"], job["cancel_requested"]) == (state == "queued", is_active)


def test_age_and_number_narrow_it_down(filled: Cli) -> None:
    ran = filled(*CANCEL, "--all", "--older-than", "1h", "--yes")
    assert (ran.code, ran.out) == (0, "0 jobs cancelled.\n")
    ran = filled(*CANCEL, "--all", "--limit", "2", "-y", "-o", "json")
    assert (ran.json["matched"], ran.json["cancelled"]) == (2, 2)


def test_a_queue_that_nobody_has_used_is_told(here: Cli) -> None:
    ran = here("job", "cancel", "--queue", "mial", "--all", "--yes")
    assert (ran.code, ran.out) == (0, "0 jobs cancelled.\n")
    assert ran.err == "Note: no job or worker has used queue 'mial' yet.\n"


def test_what_makes_no_sense_is_a_usage_error(here: Cli) -> None:
    for words in (("--state", "queued"), ("--older-than", "1h"), ("--limit", "1")):
        ran = here("job", "cancel", "x", *words)
        assert (ran.code, "go with --task and --all, not with ids" in ran.err) == (2, True)
    assert here(*CANCEL, "--all", "--state", "failed").code == 2
    assert here(*CANCEL, "--all", "--limit", "0").code == 2

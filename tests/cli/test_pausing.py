"""``headrace queue pause`` and ``resume`` of a task, ``strike``, ``strikes`` and ``lift``."""

from __future__ import annotations

import asyncio

import pytest

from headrace.storage import open_storage
from headrace.testing.contract.steps import QUEUE, ContractIncarnation
from tests.cli.conftest import Cli


def test_a_task_is_paused_shown_and_resumed(here: Cli) -> None:
    assert here("enqueue", "shop.send", "-q", "mail").code == 0
    ran = here("queue", "pause", "mail", "--task", "shop.send")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "Task 'shop.send' of queue 'mail' is paused.\n"
    assert "shop.send paused, no workers" in here("queue", "list").out
    assert "shop.send paused" in here("top", "--once").out
    [stats] = here("queue", "stats", "mail", "-o", "json").json
    assert (stats["paused"], stats["paused_tasks"], stats["strikes"]) == (
        *(False, ["shop.send"], 0),
    )
    shown = [" ".join(line.split()) for line in here("queue", "stats", "mail").out.splitlines()]
    assert "paused tasks shop.send" in shown
    assert here("queue", "strikes").out == ""
    ran = here("queue", "resume", "mail", "--task", "shop.send")
    assert ran.out == "Task 'shop.send' of queue 'mail' is resumed.\n"
    assert "paused" not in here("queue", "list").out


def test_a_task_that_no_worker_knows_is_told(
    here: Cli, cli_url: str, environment: dict[str, str]
) -> None:
    async def register() -> None:
        storage = open_storage(cli_url, tenant=environment["HEADRACE_TENANT"])
        await ContractIncarnation(storage, "w1", tasks={"shop.send": "default"}).register()
        await storage.aclose()

    asyncio.run(register())
    told = f"Note: no worker of queue '{QUEUE}' knows task 'shop.sned'. Did you mean 'shop.send'?\n"
    assert here("queue", "pause", QUEUE, "--task", "shop.sned").err == told
    assert here("queue", "strike", QUEUE, "--task", "shop.sned").err == told
    assert here("queue", "strike", QUEUE, "--task", "shop.send").err == ""
    ran = here("queue", "resume", QUEUE, "--task", "shop.send")
    assert ran.out == f"Task 'shop.send' of queue '{QUEUE}' was not paused.\n"
    assert ran.err == "Note: paused are shop.sned.\n"


def test_a_job_says_what_keeps_it_from_being_run(here: Cli) -> None:
    word = ("worker", "tests.apps.cli_app:app", "--burst", "--log-level", "error")
    here("enqueue", "add", "-q", "quick", "--id", "x", "--args", '{"a": 1, "b": 2}')
    here("queue", "pause", "quick", "--task", "add")
    assert here(*word).code == 0
    assert "blocked since its task is paused" in here("job", "show", "x").out
    here("queue", "resume", "quick", "--task", "add")
    strike = here("queue", "strike", "quick", "--where", '{"a": 1}').out.strip()
    assert here(*word).code == 0
    assert f"blocked by the strike {strike}" in here("job", "show", "x").out


def test_a_strike_is_set_listed_and_lifted(here: Cli) -> None:
    assert here("enqueue", "shop.send", "-q", "mail").code == 0
    ran = here("queue", "strike", "mail", "-t", "shop.send", "--where", '{"customer": "42"}')
    assert (ran.code, ran.err) == (0, "")
    strike = ran.out.strip()
    other = here("queue", "strike", "mail", "--task", "shop.print", "--cancel").out.strip()
    heading, *lines = here("queue", "strikes").out.splitlines()
    assert heading.split()[:5] == ["QUEUE", "STRIKE", "TASK", "WHERE", "ACTION"]
    assert [line.split()[:5] for line in lines] == [
        ["mail", strike, "shop.send", '{"customer":"42"}', "wait"],
        ["mail", other, "shop.print", "-", "cancel"],
    ]
    [first, _] = here("queue", "strikes", "mail", "-o", "json").json
    assert (first["id"], first["where"], first["action"]) == (strike, {"customer": "42"}, "wait")
    assert "2 strikes" in here("queue", "list").out
    ran = here("queue", "lift", "mail", strike, other, "0123abcd")
    assert ran.out == (
        f"Strike {strike!r} of queue 'mail' is lifted.\n"
        f"Strike {other!r} of queue 'mail' is lifted.\n"
        "Strike '0123abcd' of queue 'mail' was not there.\n"
    )
    ran = here("queue", "strikes", "mail")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("No job of mail is struck in ")


@pytest.mark.parametrize(
    "words",
    [(), ("--where", "a=1"), ("--where", "[1]"), ("--where", '{"a": [1]}'), ("--task", "")],
    ids=["nothing", "no-json", "list", "value", "task"],
)
def test_a_strike_that_makes_no_sense_is_refused(here: Cli, words: tuple[str, ...]) -> None:
    ran = here("queue", "strike", "mail", *words)
    assert ran.code != 0
    assert "where" in ran.err or "task" in ran.err
    assert here("queue", "list", "-o", "json").json == []

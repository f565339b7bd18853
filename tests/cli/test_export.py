"""``headrace job export``: ended jobs as documents, a line each, and where to go on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from anyio import to_thread

from headrace import App, FailPermanently, Worker
from headrace.testing import running
from tests.cli.conftest import Cli
from tests.support.until import until

LARGE = 12345678901234567890123


@pytest.fixture
async def app(environment: dict[str, str]) -> AsyncIterator[App[None]]:
    """Return an app with one task, on an empty storage."""
    app: App[None] = App(environment["HEADRACE_REDIS_URL"], tenant=environment["HEADRACE_TENANT"])

    @app.task(name="send", queue="mail")
    async def send(to: str) -> str:
        if to.startswith("bad"):
            raise FailPermanently(f"{to}\x85")
        return to

    async with app:
        yield app


async def some_ended(app: App[None], state: str, *names: str) -> None:
    """Let jobs end one after another, each in a millisecond of its own."""
    async with running(Worker(app)):
        for count, name in enumerate(names, 1):
            await app.tasks["send"].options(id=name).enqueue(name)

            async def is_there(count: int = count) -> bool:
                return len([job async for job in app.queue("mail").export(state)]) == count

            await until(is_there)


def documents(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


async def test_dead_letters_are_printed_a_line_each_and_one_goes_on_behind_any(
    app: App[None], cli: Cli
) -> None:
    names = ["bad 1", "bad 2\u2028", "bad 3"]
    await some_ended(app, "failed", *names)

    async def export(*words: str) -> list[dict[str, Any]]:
        ran = await to_thread.run_sync(
            cli, "job", "export", "-q", "mail", "-s", "failed", "--jsonl", *words
        )
        assert (ran.code, ran.err) == (0, "")
        return documents(ran.out)

    jobs = [job.to_dict() async for job in app.queue("mail").export("failed")]
    printed = await export()
    assert printed == jobs
    assert [job["id"] for job in printed] == names
    assert [job["args"] for job in printed] == [{"to": name} for name in names]
    assert [job["errors"][0]["message"] for job in printed] == [f"{name}\x85" for name in names]
    [first] = await export("--limit", "1")
    assert await export("--after", first["cursor"]) == printed[1:]


async def test_where_there_are_none_it_says_so_beside_the_output(app: App[None], cli: Cli) -> None:
    await app.tasks["send"].enqueue("ann")
    for queue in ("mail", "never-was"):
        ran = await to_thread.run_sync(cli, "job", "export", "-q", queue, "-s", "completed")
        assert (ran.code, ran.out) == (0, "")
        assert ran.err.startswith("There are no such jobs in tenant")


async def test_what_is_stored_is_printed_exactly_and_in_one_line(app: App[None], cli: Cli) -> None:
    # Another program may write its JSON in lines.
    payload = f'{{\n  "to": "ann",\n  "number": {LARGE}\n}}'.encode()
    job = app.tasks["send"].options(id="x").job("ann")
    await app.enqueue_many([msgspec.structs.replace(job, payload=payload)])
    await app.job("x", queue="mail").cancel()

    async def export() -> str:
        return (await to_thread.run_sync(cli, "job", "export", "-q", "mail", "-s", "cancelled")).out

    [document] = documents(await until(export) or "")
    assert document["args"] == {"to": "ann", "number": LARGE}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-s", "failed"], "Missing option '--queue'"),
        (["-q", "mail"], "Missing option '--state'"),
        (["-q", "mail", "-s", "active"], "'active' is not one of"),
        (["-q", "m l", "-s", "failed"], "queue 'm l' is not valid"),
        (["-q", "mail", "-s", "failed", "--after", ""], "it is empty"),
        (["-q", "mail", "-s", "failed", "--limit", "0"], "0 is not in the range"),
        (
            ["-q", "mail", "-s", "failed", "--after", "completed:mail:1:x"],
            "is not one of an export of failed jobs of queue 'mail'",
        ),
    ],
    ids=["no queue", "no state", "state", "queue", "empty", "limit", "cursor"],
)
def test_what_is_wrong_is_told_before_anything_is_sent(
    here: Cli, words: list[str], said: str
) -> None:
    ran = here("job", "export", *words, env={"HEADRACE_REDIS_URL": "redis://127.0.0.1:1"})
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err

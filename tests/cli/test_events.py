"""``headrace events``: what is kept, what comes, and what is wanted of it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from anyio import to_thread

from headrace import App, JobEvent, Worker
from headrace.cli.events import line
from headrace.events import JobEventKind
from headrace.testing import running
from tests.cli.conftest import Cli
from tests.support.processes import WorkerProcess
from tests.support.redis_server import RedisServer
from tests.support.terminal import Terminal
from tests.support.until import until


def an_app(url: str, tenant: str) -> App[None]:
    app: App[None] = App(url, tenant=tenant)

    @app.task(name="send", queue="mail", max_attempts=1)
    async def send(to: str) -> str:
        if to == "bad":
            raise ConnectionError(to)
        return to

    return app


@pytest.fixture
async def app(environment: dict[str, str]) -> AsyncIterator[App[None]]:
    """Return an app with one task, on an empty storage."""
    async with an_app(environment["HEADRACE_REDIS_URL"], environment["HEADRACE_TENANT"]) as app:
        yield app


async def test_the_newest_events_are_shown_the_oldest_of_them_first(
    app: App[None], cli: Cli
) -> None:
    async with running(Worker(app, lease=2)):
        await app.tasks["send"].options(id="good").enqueue_and_wait("ann")
        bad = await app.tasks["send"].options(id="bad").enqueue("bad")
        with pytest.raises(Exception, match="bad"):
            await bad.result(timeout=20)
    await app.enqueue("other", queue="other")

    async def shown(*words: str) -> list[str]:
        ran = await to_thread.run_sync(cli, "events", *words)
        assert (ran.code, ran.err) == (0, "")
        return ran.out.splitlines()

    everything = await shown()
    kinds = [one.split()[1] for one in everything]
    assert kinds == [
        *("joined", "queued", "active", "completed", "queued", "active", "failed", "left", "queued")
    ]
    failed = everything[6]
    assert failed.split()[1:5] == ["failed", "mail", "bad", "send"]
    assert ", exhausted, ConnectionError: bad, at " in failed
    assert f"{__file__}:" in failed
    assert await shown("-n", "2") == everything[-2:]
    assert await shown("-q", "other") == everything[-1:]
    assert await shown("--job", "good") == everything[1:4]
    assert await shown("-k", "failed", "-k", "completed") == [everything[3], failed]
    documents = [json.loads(one) for one in await shown("-t", "send", "-o", "json")]
    assert [(one["kind"], one["job_id"]) for one in documents] == [
        (kind, "good" if at < 3 else "bad") for at, kind in enumerate(kinds[1:7])
    ]
    assert [one["number"] for one in documents] == [2, 3, 4, 5, 6, 7]
    assert (documents[-1]["error"], documents[-1]["message"]) == ("ConnectionError", "bad")
    ran = await to_thread.run_sync(cli, "events", "-t", "nothing")
    assert ran.err.startswith("There are no such events in tenant ")


async def test_what_happens_is_followed_also_in_queues_that_are_new(
    app: App[None], environment: dict[str, str]
) -> None:
    await app.tasks["send"].options(id="before").enqueue("ann")
    with Terminal("events", "-f", "--interval", "50ms", columns=120, env=environment) as terminal:
        await terminal.shows("before")
        await app.enqueue("t", queue="brand-new")
        await terminal.shows("brand-new")
        async with running(Worker(app, lease=2)):
            await terminal.shows("completed\x1b[0m  mail  before  send")
        assert terminal.process.poll() is None
        terminal.enter("\x03")
        assert await terminal.ended() == 130
        assert "Traceback" not in terminal.text


async def test_following_outlives_a_server_that_is_away(tmp_path: Path) -> None:
    with RedisServer(appendonly=True) as server:
        async with an_app(server.url, "t") as app:
            await app.tasks["send"].options(id="before").enqueue("ann")
            with WorkerProcess.module(
                "headrace", "events", "--follow", "-o", "json",
                directory=tmp_path, env={"HEADRACE_URL": server.url, "HEADRACE_TENANT": "t"},
            ) as process:  # fmt: skip
                await until(lambda: "before" in process.stdout, within=15)
                server.kill()
                await until(lambda: "The storage is away" in process.stderr, within=15)
                server.start()
                await app.tasks["send"].options(id="after").enqueue("ann")
                await until(lambda: "after" in process.stdout, within=15)
            assert process.stderr.count("The storage is away") == 1
            assert "The storage is back." in process.stderr
            assert json.loads(process.stdout.splitlines()[-1])["job_id"] == "after"


AT = datetime(2026, 1, 31, 8, 0, 0, 5000, UTC)
EVENT = JobEvent(
    queue="mail",
    number=7,
    stream_id="1-0",
    at=AT,
    kind=JobEventKind.RETRYING,
    job_id="a\x1b[2J",
    task="send",
    start=2,
    incarnation="i",
    wait_s=None,
    run_s=1.5,
    detail="ConnectionError",
    error="ConnectionError",
    message="no such \x1b[2J",
    frame="mail.py:12 in send",
    due_at=AT + timedelta(seconds=5),
    created_at=None,
    worker=None,
    host=None,
    version=None,
    app_version=None,
)


def test_a_line_tells_what_its_event_has() -> None:
    told = (
        "\x1b[33mretrying \x1b[0m  mail  a\ufffd[2J  send  start 2, ran 1.5s, "
        "ConnectionError: no such \ufffd[2J, at mail.py:12 in send, due"
    )
    assert line(EVENT, AT) == f"08:00:00.005  {told} 08:00:05.005"
    later = line(EVENT, AT + timedelta(days=1))
    assert later == f"2026-01-31 08:00:00.005  {told} 2026-01-31 08:00:05.005"


def test_a_line_tells_what_became_of_a_job_and_how_long_it_took() -> None:
    failed = dataclasses.replace(
        EVENT, kind=JobEventKind.FAILED, job_id="x", detail="exhausted", message=None, frame=None,
        due_at=None, created_at=AT - timedelta(minutes=2),
    )  # fmt: skip
    told = "start 2, ran 1.5s, exhausted, ConnectionError, created 2m before"
    assert line(failed, AT).endswith(f"  mail  x  send  {told}")


def test_a_line_tells_who_has_left() -> None:
    left = dataclasses.replace(
        EVENT, kind=JobEventKind.LEFT, job_id="i", task="", start=0, run_s=None, detail="reaped",
        error=None, message=None, frame=None, due_at=None,
        worker="mailer", host="box-1", version="1.2.3", app_version="2025-11",
    )  # fmt: skip
    told = "reaped, mailer on box-1, headrace 1.2.3, version 2025-11"
    assert line(left, AT).endswith(f"  mail  i  {told}")

"""``headrace job wait`` and ``job stream`` on jobs that a worker of the test runs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import anyio
import pytest
from anyio import to_thread

from headrace import App, Context, FailPermanently, Worker
from headrace.testing import running
from tests.cli.conftest import Cli
from tests.support.terminal import Terminal

PIECES = ("one", {"page": 2}, "three \x1b[31m")


class Site:
    """An app with one worker, whose handler goes on when the test says so."""

    def __init__(self, app: App[None]) -> None:
        self.app = app
        self.goes_on = anyio.Event()

        @app.task(name="read", queue="books")
        async def read(context: Context, title: str) -> int:
            for piece in PIECES[:2]:
                await context.emit(piece)
            await self.goes_on.wait()
            await context.emit(PIECES[2])
            if title == "bad":
                raise FailPermanently("no such book")
            return len(title)

        self.read = read


@pytest.fixture
async def site(environment: dict[str, str]) -> AsyncIterator[Site]:
    """Return a site on an empty storage."""
    app: App[None] = App(environment["HEADRACE_REDIS_URL"], tenant=environment["HEADRACE_TENANT"])
    async with app:
        yield Site(app)


async def test_a_stream_shows_each_piece_when_it_comes_and_ends_with_the_job(
    site: Site, environment: dict[str, str]
) -> None:
    async with running(Worker(site.app, lease=2)):
        job = await site.read.options(id="long-title").enqueue("ulysses")
        with Terminal("job", "stream", "long", env=environment) as terminal:
            await terminal.shows('one\n{"page":2}\n')
            assert terminal.process.poll() is None
            site.goes_on.set()
            assert await terminal.ended() == 0
            assert terminal.text == 'one\n{"page":2}\nthree \N{REPLACEMENT CHARACTER}[31m\n'
        assert await job.result(timeout=10) == 7


async def test_a_stream_for_programs_is_one_document_a_line(site: Site, cli: Cli) -> None:
    site.goes_on.set()
    async with running(Worker(site.app, lease=2)):
        await site.read.options(id="bad").enqueue("bad")
        ran = await to_thread.run_sync(cli, "job", "stream", "bad", "-o", "json")
        joined = await to_thread.run_sync(cli, "job", "stream", "bad", "--join")
    assert [json.loads(line) for line in ran.out.splitlines()] == list(PIECES)
    assert joined.out.startswith('one{"page":2}\nthree ')
    for one in (ran, joined):
        assert one.code == 5
        assert one.err.startswith("Error: job 'bad' failed (permanent): ")
        assert one.err.endswith("FailPermanently: no such book\n")


async def test_a_wait_ends_with_the_job_and_prints_its_result(
    site: Site, environment: dict[str, str], cli: Cli
) -> None:
    async with running(Worker(site.app, lease=2)):
        await site.read.options(id="good").enqueue("ulysses")
        ran = await to_thread.run_sync(cli, "job", "wait", "good", "--timeout", "100ms")
        assert (ran.code, ran.out) == (124, "")
        assert "look at it with headrace job show good" in ran.err
        with Terminal("job", "wait", "good", env=environment) as terminal:
            site.goes_on.set()
            assert await terminal.ended() == 0
            assert terminal.text == "7\n"
        ran = await to_thread.run_sync(cli, "job", "wait", "good", "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json == {
        "id": "good", "queue": "books", "task": "read", "outcome": None,
        "state": "completed", "reason": None, "error": None, "result": 7,
    }  # fmt: skip


async def test_a_wait_for_a_failed_job_says_so_by_its_exit_code(site: Site, cli: Cli) -> None:
    site.goes_on.set()
    async with running(Worker(site.app, lease=2)):
        await site.read.options(id="bad").enqueue("bad")
        ran = await to_thread.run_sync(cli, "job", "wait", "bad", "-o", "json")
    assert (ran.code, ran.json["state"], ran.json["reason"]) == (5, "failed", "permanent")


def test_there_must_be_a_job_to_wait_for(here: Cli) -> None:
    for words in (("wait", "nope"), ("stream", "nope")):
        ran = here("job", *words)
        assert (ran.code, ran.out) == (1, "")
        assert "there is no job 'nope' in any queue" in ran.err

"""A record that Redis has lost takes neither its id nor its place with it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
import redis

from headrace import App, EnqueueOutcome, JobHandle, Limit, Worker
from headrace.testing import EventLog, running
from tests.support.until import patience, until

QUEUE = "mail"
GATES = {"send": "to", "turn": "fair:default:5"}
"""By tasks, what their jobs of one key have a place in."""


class Site:
    """Two tasks of which one job a key is next, one by a limit and one by turns."""

    def __init__(self, app: App[None]) -> None:
        self.app = app
        self.ran: list[str] = []
        self.go_on = asyncio.Event()

        @app.task(name="send", queue=QUEUE, limits=[Limit("to", by="key", concurrency=1)])
        async def send(key: str, what: str) -> str:
            return await self._run(what)

        @app.task(name="turn", queue=QUEUE, fair_by="key")
        async def turn(key: str, what: str) -> str:
            return await self._run(what)

    async def _run(self, what: str) -> str:
        self.ran.append(what)
        if what == "hold":
            await self.go_on.wait()
        return what

    async def enqueue(self, name: str, what: str, job_id: str | None = None) -> JobHandle[str]:
        return await self.app.tasks[name].options(id=job_id).enqueue("k", what)

    def worker(self) -> Worker:
        return Worker(self.app, [QUEUE], lease=1.0, sweep_interval=0.1, emit=EventLog())


@pytest.fixture
def site(app: App[None]) -> Site:
    return Site(app)


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url) as client:
        yield client


def lose(client: redis.Redis, app: App[None]) -> None:
    """Delete the record of job x, as a server does that is out of memory."""
    assert client.delete(f"hr:{{{app.tenant}:{QUEUE}}}:job:x") == 1


async def go_on(site: Site, name: str) -> None:
    """Have the id run again, and another one of its key; nothing of the lost job is left."""
    again = await site.enqueue(name, "again", "x")
    assert again.outcome in (EnqueueOutcome.QUEUED, EnqueueOutcome.BLOCKED)
    other = await site.enqueue(name, "other")
    async with running(site.worker()):
        site.go_on.set()
        for job, what in ((again, "again"), (other, "other")):
            assert await job.result(timeout=patience(20)) == what

    async def is_clean() -> bool:
        gate = await site.app.queue(QUEUE).gate(GATES[name], "k")
        stats = await site.app.queue(QUEUE).stats()
        left = stats.queued + stats.active + stats.blocked + gate.ready + gate.active + gate.blocked
        return left == 0

    await until(is_clean, within=20)
    assert "never" not in site.ran


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("state", ["ready", "blocked"])
async def test_an_id_and_a_place_are_free_of_a_waiting_job_whose_record_is_lost(
    site: Site, client: redis.Redis, name: str, state: str
) -> None:
    # BC-25: a lock outlived its job, which had been evicted.
    if state == "blocked":
        await site.enqueue(name, "first")
    await site.enqueue(name, "never", "x")
    lose(client, site.app)
    await go_on(site, name)


async def test_an_id_and_a_place_are_free_of_an_active_job_whose_record_is_lost(
    site: Site, client: redis.Redis
) -> None:
    # BC-25 and BC-11. The repair finds the place, which looks at all of them in a few seconds.
    async with running(site.worker()):
        await site.enqueue("send", "hold", "x")
        await until(lambda: site.ran == ["hold"], within=20)
        lose(client, site.app)
        await go_on(site, "send")

"""Bursts of calls and struck jobs leave no lock behind, and no id runs twice at once."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from headrace import App, EnqueueOutcome, JobState, Limit, Task, Worker
from headrace.testing import running
from tests.support.jobs import drained
from tests.support.until import patience, until

QUEUE = "mail"


class Site:
    """A task of which one job a customer runs at a time, until the site is open."""

    def __init__(self, app: App[None]) -> None:
        self.app = app
        self.queue = app.queue(QUEUE)
        self.ran: list[str] = []
        self.now = 0
        self.most = 0
        self.is_open = asyncio.Event()

        @app.task(name="send", queue=QUEUE, limits=[Limit("to", by="to", concurrency=1)])
        async def send(to: str, what: str) -> str:
            self.now += 1
            self.most = max(self.most, self.now)
            self.ran.append(what)
            await self.is_open.wait()
            self.now -= 1
            return what

        self.send: Task[[str, str], str] = send


@pytest.fixture
def site(app: App[None]) -> Site:
    return Site(app)


async def test_of_a_hundred_debounced_calls_around_a_start_the_last_runs_next(site: Site) -> None:
    # BC-30: the window opened as the job was claimed, so that several were there.
    call = site.send.options(debounce=0.02)
    async with running(Worker(site.app, [QUEUE])), running(Worker(site.app, [QUEUE])):
        await call.enqueue("a", "first")
        await until(lambda: site.ran == ["first"], within=30)
        async with asyncio.TaskGroup() as group:
            for n in range(99):
                group.create_task(call.enqueue("a", f"next {n}"))
        last = await call.enqueue("a", "last")
        stats = await site.queue.stats()
        assert (stats.active, stats.blocked, stats.queued, stats.scheduled) == (1, 1, 0, 0)
        site.is_open.set()
        assert await last.result(patience(30)) == "last"
    assert site.ran == ["first", "last"]
    assert site.most == 1


@pytest.mark.parametrize("end", ["completed", "cancelled", "purged"])
async def test_a_burst_that_is_over_holds_up_no_later_one(site: Site, end: str) -> None:
    # BC-25: a lock outlived the job that had it.
    site.is_open.set()
    call = site.send.options(debounce=0.01)
    first = await call.enqueue("a", "first")
    if end == "completed":
        async with running(Worker(site.app, [QUEUE])):
            await first.result(patience(30))
    elif end == "cancelled":
        await first.cancel()
    else:
        assert await site.queue.purge(JobState.SCHEDULED, first.id) == 1
    second = await call.enqueue("a", "second")
    assert second.outcome is EnqueueOutcome.SCHEDULED
    async with running(Worker(site.app, [QUEUE])):
        assert await second.result(patience(30)) == "second"


async def test_of_a_hundred_throttled_calls_one_runs(site: Site) -> None:
    # BC-42, of calls: a short job had cleaned up before the others looked.
    site.is_open.set()
    call = site.send.options(throttle=3600)
    async with running(Worker(site.app, [QUEUE])):
        handles = [await call.enqueue("a", f"call {n}") for n in range(50)]
        await handles[0].result(patience(30))
        handles += [await call.enqueue("a", f"call {n}") for n in range(50, 100)]
        await drained(site.queue, within=30)
    assert Counter(handle.id for handle in handles) == {handles[0].id: 100}
    assert site.ran == ["call 0"]


async def test_what_a_strike_cancels_frees_its_id_and_its_place(site: Site) -> None:
    # BC-25: one more way in which a job can vanish.
    site.is_open.set()
    strike = await site.queue.strike(task="send", where={"to": "a"}, action="cancel")
    struck = [await site.send.options(id=f"x{n}").enqueue("a", "never") for n in range(3)]
    other = await site.send.enqueue("b", "other")
    async with running(Worker(site.app, [QUEUE])):
        assert await other.result(patience(30)) == "other"
        await drained(site.queue, within=30)
        assert {(await job.status()).state for job in struck} == {JobState.CANCELLED}
        assert await site.queue.lift(strike)
        again = [await site.send.options(id=f"x{n}").enqueue("a", f"again {n}") for n in range(3)]
        assert [await job.result(patience(30)) for job in again] == [f"again {n}" for n in range(3)]
    gate = await site.queue.gate("to", "a")
    assert (gate.ready, gate.active, gate.blocked) == (0, 0, 0)
    assert "never" not in site.ran


async def test_what_a_strike_holds_charges_nobody_and_runs_in_its_order_once_lifted(
    site: Site,
) -> None:
    # BC-91: what is held up is charged no attempt and no stall, and its queue goes on.
    site.is_open.set()
    strike = await site.queue.strike(task="send", where={"to": "a"}, action="wait")
    held = [await site.send.enqueue("a", f"held {n}") for n in range(4)]
    async with running(Worker(site.app, [QUEUE])):
        other = await site.send.enqueue("b", "other")
        assert await other.result(patience(30)) == "other"

        async def is_held() -> bool:
            return (await site.queue.stats()).blocked == 4

        await until(is_held, within=30)
        assert await site.queue.lift(strike)
        assert [await job.result(patience(30)) for job in held] == [f"held {n}" for n in range(4)]
    assert [what for what in site.ran if what != "other"] == [f"held {n}" for n in range(4)]
    for job in held:
        status = await job.status()
        assert (status.failures, status.stalls) == (0, 0)

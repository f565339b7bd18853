"""Whatever becomes of a job, its id and its places are free, and of one id none runs twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

from headrace import (
    App,
    EnqueueOutcome,
    FailPermanently,
    JobState,
    Limit,
    Task,
    Worker,
)
from headrace.app import clients_of
from headrace.testing import running
from tests.support.jobs import drained
from tests.support.until import patience, until

QUEUE = "mail"
NAME = "send:to"


class Site:
    """A task of which one job a key runs at a time, and what its handlers were given.

    A payload that begins with "hold" waits until the site is open.
    """

    def __init__(self, app: App[None]) -> None:
        self.app = app
        self.queue = app.queue(QUEUE)
        self.ran: list[str] = []
        self.now: Counter[str] = Counter()
        self.most = 0
        self.is_open = asyncio.Event()

        @app.task(name="send", queue=QUEUE, max_attempts=1, limits=[Limit(by="to", concurrency=1)])
        async def send(to: str, what: str) -> str:
            self.now[to] += 1
            self.most = max(self.most, *self.now.values())
            try:
                self.ran.append(what)
                if what.startswith("hold"):
                    await self.is_open.wait()
                if what.startswith("fail"):
                    raise FailPermanently(what)
                return what
            finally:
                self.now[to] -= 1

        self.send: Task[[str, str], str] = send

    async def counts(self) -> tuple[int, int, int]:
        """Return how many jobs of the key are ready, active and blocked."""
        gate = await self.queue.gate(NAME, "a")
        return gate.ready, gate.active, gate.blocked

    async def begun(self, what: str) -> None:
        await until(lambda: what in self.ran, within=20)


@pytest.fixture
def site(app: App[None]) -> Site:
    return Site(app)


async def completes(site: Site) -> None:
    async with running(Worker(site.app, [QUEUE])):
        await site.send.options(id="x", keep=0).enqueue("a", "first")
        await site.begun("first")


async def fails(site: Site) -> None:
    async with running(Worker(site.app, [QUEUE])):
        await site.send.options(id="x").enqueue("a", "fail")
        await site.begun("fail")


async def fails_and_is_purged(site: Site) -> None:
    await fails(site)
    assert await site.queue.purge(JobState.FAILED, "x") == 1


async def is_cancelled(site: Site) -> None:
    await (await site.send.options(id="x").enqueue("a", "never")).cancel()


async def is_cancelled_in_line(site: Site) -> None:
    await site.send.options(id="first").enqueue("a", "never")
    job = await site.send.options(id="x").enqueue("a", "never")
    assert job.outcome is EnqueueOutcome.BLOCKED
    await job.cancel()
    await site.app.job("first", queue=QUEUE).cancel()


async def is_cancelled_while_it_runs(site: Site) -> None:
    async with running(Worker(site.app, [QUEUE])):
        job = await site.send.options(id="x").enqueue("a", "hold")
        await site.begun("hold")
        await job.cancel()

        async def has_ended() -> bool:
            return (await job.status()).state is JobState.CANCELLED

        await until(has_ended, within=30)


async def is_purged(site: Site) -> None:
    await site.send.options(id="x").enqueue("a", "never")
    assert await site.queue.purge(JobState.QUEUED, "x") == 1


async def is_purged_in_line(site: Site) -> None:
    await site.send.options(id="first").enqueue("a", "never")
    await site.send.options(id="x").enqueue("a", "never")
    assert await site.queue.purge(JobState.BLOCKED, all_jobs=True) == 1
    assert await site.queue.purge(JobState.QUEUED, all_jobs=True) == 1


async def expires(site: Site) -> None:
    await site.send.options(id="x", expires=0.001).enqueue("a", "never")
    async with running(Worker(site.app, [QUEUE])):

        async def has_failed() -> bool:
            return (await site.queue.stats()).dead == 1

        await until(has_failed, within=30)


async def goes_with_its_queue(site: Site) -> None:
    await site.send.options(id="x").enqueue("a", "never")
    assert await site.queue.purge(JobState.QUEUED, "x") == 1
    storage = clients_of(site.app).current().storage
    while await storage.delete_queue(QUEUE, is_forced=True):
        pass


ENDS: dict[str, Callable[[Site], Awaitable[None]]] = {
    end.__name__: end
    for end in (
        completes,
        fails,
        fails_and_is_purged,
        is_cancelled,
        is_cancelled_in_line,
        is_cancelled_while_it_runs,
        is_purged,
        is_purged_in_line,
        expires,
        goes_with_its_queue,
    )
}


@pytest.mark.parametrize("end", ENDS)
async def test_an_id_and_a_place_are_free_whatever_became_of_the_job(site: Site, end: str) -> None:
    # BC-25: a lock outlived its job, by one of the ways in which a job can vanish.
    await ENDS[end](site)
    await until(lambda: not any(site.now.values()), within=20)

    async def is_accepted() -> bool:
        again = await site.send.options(id="x").enqueue("a", "again")
        return again.outcome is EnqueueOutcome.QUEUED

    # A handler has returned before its outcome is stored.
    await until(is_accepted, within=20)
    assert await site.counts() == (1, 0, 0)
    async with running(Worker(site.app, [QUEUE])):
        result = await site.app.job("x", queue=QUEUE, task=site.send).result(patience(20))
        assert result == "again"
    assert await site.counts() == (0, 0, 0)
    assert "never" not in site.ran


async def test_a_job_that_is_blocked_is_cancelled_and_comes_again_with_other_arguments(
    site: Site,
) -> None:
    # BC-28: cancel, then enqueue again, left two copies.
    site.is_open.set()
    first = await site.send.enqueue("a", "first")
    blocked = await site.send.options(id="x").enqueue("a", "never")
    assert (await blocked.cancel()).value == "cancelled"
    again = await site.send.options(id="x").enqueue("a", "again")
    assert again.outcome is EnqueueOutcome.BLOCKED
    async with running(Worker(site.app, [QUEUE])):
        assert await first.result(patience(20)) == "first"
        assert await again.result(patience(20)) == "again"
    assert site.ran == ["first", "again"]


@pytest.mark.parametrize("seconds", [-864_000, -0.001, 0, 0.05, None])
async def test_the_newest_runs_next_and_none_beside_it_whatever_its_time(
    site: Site, seconds: float | None
) -> None:
    # BC-29: a singleton was broken for some run times of the second job.
    call = site.send.options(id="x", on_conflict="update")
    async with running(Worker(site.app, [QUEUE])), running(Worker(site.app, [QUEUE])):
        await call.enqueue("a", "hold")
        await site.begun("hold")
        handles = []
        for n in range(3):
            run_at = None if seconds is None else datetime.now(UTC) + timedelta(seconds=seconds)
            timed = site.send.options(id="x", on_conflict="update", run_at=run_at)
            handles.append(await timed.enqueue("a", f"next {n}"))
        assert {handle.outcome for handle in handles} == {EnqueueOutcome.UPDATED}
        assert site.ran == ["hold"]
        site.is_open.set()
        assert await handles[-1].result(patience(20)) == "next 2"
    assert site.ran == ["hold", "next 2"]
    assert site.most == 1
    assert await site.counts() == (0, 0, 0)


async def test_of_a_hundred_updates_around_a_start_one_runs_and_one_waits(site: Site) -> None:
    # BC-30: the window of dedup opened as the job was claimed.
    call = site.send.options(id="x", on_conflict="update")
    async with running(Worker(site.app, [QUEUE])), running(Worker(site.app, [QUEUE])):
        await call.enqueue("a", "hold first")
        async with asyncio.TaskGroup() as group:
            for n in range(100):
                group.create_task(call.enqueue("a", f"hold {n}"))
        await until(lambda: site.ran, within=20)
        stats = await site.queue.stats()
        assert stats.active + stats.queued <= 1
        assert stats.blocked <= 1
        site.is_open.set()
        await drained(site.queue, within=30)
    assert len(site.ran) <= 2
    assert site.most == 1


async def test_of_a_hundred_first_uses_of_a_key_one_job_comes(site: Site) -> None:
    # BC-30, of idempotency keys: all answer with the id of the first.
    site.is_open.set()
    call = site.send.options(idempotency_key="order-7")
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(call.enqueue("a", f"use {n}")) for n in range(100)]
    handles = [each.result() for each in calls]
    outcomes = Counter(handle.outcome for handle in handles)
    assert outcomes == {EnqueueOutcome.QUEUED: 1, EnqueueOutcome.DUPLICATE: 99}
    assert len({handle.id for handle in handles}) == 1
    async with running(Worker(site.app, [QUEUE])):
        await handles[0].result(patience(20))
    # BC-24: it answers with the first job, for as long as that is kept, and holds beyond.
    again = await call.enqueue("a", "again")
    assert (again.outcome, again.id) == (EnqueueOutcome.COMPLETED, handles[0].id)
    assert await site.queue.purge(JobState.COMPLETED, again.id) == 1
    again = await call.enqueue("a", "again")
    assert (again.outcome, again.id) == (EnqueueOutcome.DUPLICATE, handles[0].id)
    assert len(site.ran) == 1

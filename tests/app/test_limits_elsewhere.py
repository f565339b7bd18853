"""Limits of jobs that come otherwise than by a call: by bulk writes, schedules, a redrive."""

from __future__ import annotations

import pytest

from headrace import (
    App,
    Every,
    FailPermanently,
    JobState,
    Limit,
    Task,
    UsageError,
    Worker,
)
from headrace.testing import Kit, running
from tests.support.until import until

NAME = "charge:customer"


@pytest.fixture
def charge(app: App[None]) -> Task[[str, int], int]:
    @app.task(name="charge", queue="pay", limits=[Limit(by="customer", concurrency=1)])
    async def charge(customer: str, cents: int) -> int:
        if cents < 0:
            raise FailPermanently(f"{cents} cents")
        return cents

    return charge


async def counts(app: App[None], key: str = "a") -> tuple[int, int, int]:
    """Return how many jobs of a key are ready, active and blocked."""
    gate = await app.queue("pay").gate(NAME, key)
    return gate.ready, gate.active, gate.blocked


async def test_the_jobs_of_a_bulk_write_meet_their_limits_once_they_are_published(
    app: App[None], charge: Task[[str, int], int]
) -> None:
    async with app.bulk("w", queue="pay") as bulk:
        await bulk.add_many(charge.job(key, n) for n in range(3) for key in "ab")
        assert await counts(app) == (0, 0, 0)
    assert (bulk.report.added, bulk.report.is_published) == (6, True)
    assert await counts(app, "a") == await counts(app, "b") == (1, 0, 2)


async def test_a_bulk_write_into_a_full_queue_is_published_by_workers_once_there_is_room(
    app: App[None], charge: Task[[str, int], int]
) -> None:
    await app.queue("pay").configure(max_length=2)
    first = [await charge.enqueue(key, 1) for key in "ab"]
    async with app.bulk("w", queue="pay") as bulk:
        await bulk.add_many(charge.job("a", n) for n in range(3))
    assert (bulk.report.added, bulk.report.is_published) == (0, False)
    assert (await app.queue("pay").stats()).queued == 2
    async with running(Worker(app, ["pay"], sweep_interval=0.05)):
        for job in first:
            assert await job.result(timeout=30) == 1

        async def completed() -> bool:
            ended = [row async for row in app.queue("pay").jobs("completed")]
            return len(ended) == 5

        await until(completed, within=30)


async def test_an_update_is_refused_where_the_jobs_of_a_bulk_write_are_limited(
    app: App[None], charge: Task[[str, int], int]
) -> None:
    job = charge.options(id="x", on_conflict="update").job("a", 1)
    async with app.bulk("w", queue="pay") as bulk:
        with pytest.raises(UsageError):
            await bulk.add(job)
    assert bulk.report.rows == 0


async def test_redriven_jobs_meet_their_limits(
    app: App[None], charge: Task[[str, int], int]
) -> None:
    handles = [await charge.options(id=f"j{n}").enqueue("a", -n) for n in (1, 2, 3)]
    async with running(Worker(app, ["pay"])):
        for handle in handles:
            with pytest.raises(Exception, match="cents"):
                await handle.result(timeout=30)
    assert await counts(app) == (0, 0, 0)
    assert await app.queue("pay").redrive(all_jobs=True) == 3
    assert await counts(app) == (1, 0, 2)
    status = await handles[0].status()
    assert status.limits == {NAME: "a"}


async def test_the_jobs_of_schedules_meet_their_limits() -> None:
    app: App[None] = App("memory://")
    order: list[int] = []

    @app.task(name="charge", queue="pay", limits=[Limit(by="customer", rate="1/min")])
    async def charge(customer: str, cents: int) -> None:
        order.append(cents)

    async with Kit(app) as kit:
        for cents in (1, 2, 3):
            await app.schedules.put(f"s{cents}", charge.job("a", cents), Every(3600))
        await kit.advance(3600)
        jobs = [row async for row in app.queue("pay").jobs(JobState.BLOCKED)]
        assert len(jobs) == 2
        assert len(kit.enqueued(charge)) == 3
        for started in (1, 2, 3):
            await kit.run_until_idle()
            assert len(order) == started
            await kit.advance(60)
        assert sorted(order) == [1, 2, 3]

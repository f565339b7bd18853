"""A sync app in a kit: code under test enqueues without a loop, and the test runs the jobs."""

from __future__ import annotations

import asyncio

import pytest

from headrace import App, JobFailed, SyncApp, SyncTask, UsageError
from headrace.testing import Kit
from tests.support.nowhere import unreachable_app


@pytest.fixture
def app() -> SyncApp[None]:
    """Return an app whose own storage is nowhere."""
    return SyncApp(unreachable_app())


@pytest.fixture
def charge(app: SyncApp[None]) -> SyncTask[[int], str]:
    @app.task(name="charge", max_attempts=1)
    def charge(amount: int) -> str:
        if amount < 0:
            raise ValueError("no amount")
        return f"charged {amount}"

    return charge


async def test_jobs_run_when_the_test_says_so(
    app: SyncApp[None], charge: SyncTask[[int], str]
) -> None:
    async with Kit(app) as kit:
        job = charge.enqueue(5)
        later = charge.options(delay=60).enqueue(6)
        with pytest.raises(UsageError, match="run it first"):
            job.result()
        with pytest.raises(UsageError, match="run it first"):
            next(job.stream())
        with pytest.raises(UsageError, match="where jobs run when the test says so"):
            charge.enqueue_and_wait(5)
        kit.assert_enqueued(charge, {"amount": 5})
        kit.assert_enqueued(charge.job(5))
        await kit.run_until_idle()
        assert job.result() == "charged 5"
        assert app.queue("default").stats().scheduled == 1
        await kit.run_until_idle(advance=True)
        assert later.result() == "charged 6"
        assert len(app.enqueue_many(charge.job(n) for n in range(1_200))) == 1_200
        assert len(kit.enqueued("charge")) == 1_202


def test_a_test_needs_no_loop_of_its_own(app: SyncApp[None], charge: SyncTask[[int], str]) -> None:
    with Kit(app) as kit:
        assert kit.app is app.app
        job = charge.enqueue(-1)
        asyncio.run(kit.run_until_idle())
        with pytest.raises(JobFailed, match="no amount"):
            job.result()
        assert app.find(job.id).queue == "default"


async def test_a_handler_enqueues_more(app: SyncApp[None], charge: SyncTask[[int], str]) -> None:
    @app.task(name="order")
    def order(amounts: list[int]) -> list[str]:
        return [charge.enqueue(amount).id for amount in amounts]

    async with Kit(app) as kit:
        job = order.enqueue([1, 2])
        attempts = await kit.run_until_idle()
        assert [attempt.task for attempt in attempts] == ["order", "charge", "charge"]
        assert [app.job(each, task=charge).result() for each in job.result()] == [
            "charged 1",
            "charged 2",
        ]


def test_afterwards_the_app_is_on_its_own_storage_again() -> None:
    inner: App[None] = App("memory://sync-kit")
    app = SyncApp(inner)
    with app:
        app.enqueue("a", queue="own")
        with Kit(inner), app:
            assert app.queues() == []
            app.enqueue("a", queue="kit")
        assert app.queues() == ["own"]
        with Kit(app):
            assert app.queues() == []
        assert app.queues() == ["own"]

"""G5: first in, first out in one queue and tier with one slot; never early."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from headrace import App, JobState, Task, Worker
from headrace.testing import running
from tests.support.jobs import reached
from tests.support.until import patience, until


@pytest.fixture
def order() -> list[int]:
    return []


@pytest.fixture
def note(app: App[None], order: list[int]) -> Task[[int], None]:
    @app.task
    async def note(number: int) -> None:
        order.append(number)

    return note


async def test_jobs_of_one_tier_run_in_the_order_of_their_acceptance(
    app: App[None], note: Task[[int], None], order: list[int]
) -> None:
    for number in range(50):
        await note.enqueue(number)
    await app.enqueue_many(note.job(number) for number in range(50, 1_200))
    async with running(Worker(app, concurrency=1)):
        await until(lambda: len(order) == 1_200, within=15)
    assert order == list(range(1_200))


async def test_higher_tiers_run_first(
    app: App[None], note: Task[[int], None], order: list[int]
) -> None:
    numbers = [tier * 100 + n for tier in range(10) for n in range(5)]
    shuffled = random.Random(1).sample(range(10), 10)
    for n in range(5):
        for tier in shuffled:
            await note.options(priority=tier).enqueue(tier * 100 + n)
    async with running(Worker(app, concurrency=1)):
        await until(lambda: len(order) == 50)
    assert order == sorted(numbers, key=lambda number: (-(number // 100), number))


async def test_a_job_that_is_put_back_is_the_next_to_run(app: App[None], order: list[int]) -> None:
    started: list[int] = []

    @app.task
    async def work(number: int) -> None:
        started.append(number)
        if len(started) == 1:
            await asyncio.Event().wait()
        order.append(number)

    for number in range(3):
        await work.enqueue(number)
    async with running(Worker(app, concurrency=1, shutdown_timeout=0)):
        await until(lambda: started == [0])
    async with running(Worker(app, concurrency=1)):
        await until(lambda: len(order) == 3)
    assert order == [0, 1, 2]


async def test_several_jobs_that_are_put_back_keep_their_order(app: App[None]) -> None:
    order: list[int] = []
    waiting: list[int] = []
    is_stopping = False

    @app.task
    async def work(number: int) -> None:
        if not is_stopping:
            waiting.append(number)
            await asyncio.Event().wait()
        order.append(number)

    for number in range(12):
        await work.enqueue(number)
    async with running(Worker(app, concurrency=8, shutdown_timeout=0)):
        await until(lambda: len(waiting) == 8)
        is_stopping = True
    async with running(Worker(app, concurrency=1)):
        await until(lambda: len(order) == 12)
    assert order == list(range(12))


async def test_a_delayed_job_never_starts_early_and_soon_after_it_is_due(app: App[None]) -> None:
    started: list[float] = []

    @app.task
    async def work() -> None:
        started.append(time.time())

    async with running(Worker(app)):
        handle = await work.options(delay=0.4).enqueue()
        due_at = (await handle.status()).due_at
        await handle.result(timeout=patience(10))
    assert due_at is not None
    assert 0 <= started[0] - due_at.timestamp() < 1


async def test_an_earlier_due_time_is_noticed_while_the_worker_waits_for_a_later_one(
    app: App[None], note: Task[[int], None], order: list[int]
) -> None:
    async with running(Worker(app)):
        await note.options(delay=30).enqueue(1)
        soon = await note.options(delay=0.1).enqueue(2)
        await soon.result(timeout=patience(10))
    assert order == [2]


async def test_a_long_delay_runs_once(
    app: App[None], note: Task[[int], None], order: list[int]
) -> None:
    # BC-17: a delay of several leases, with several workers.
    handle = await note.options(delay=1.2).enqueue(1)
    workers = [Worker(app, lease=0.5, sweep_interval=0.1) for _ in range(3)]
    async with running(workers[0]), running(workers[1]), running(workers[2]):
        await reached(handle, JobState.COMPLETED)
    assert order == [1]
    record = await handle.status()
    assert (record.starts, record.stalls) == (1, 0)

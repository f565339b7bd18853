"""An endless urgent load leaves low jobs their share, and long ones leave room for urgent ones."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from headrace import App, JobState, Worker
from headrace.testing import EventLog, running
from tests.support.until import patience, until

QUEUE = "mail"
LOW, HIGH = 0, 9
TEN = 10
BACKLOG = 30
"""How many urgent jobs wait at any time."""


class Load:
    """Urgent jobs without an end: each brings the next. Notes which priority began when."""

    def __init__(self, app: App[None]) -> None:
        self.app = app
        self.queue = app.queue(QUEUE)
        self.began: list[int] = []
        self.is_over = False

        @app.task(name="urgent", queue=QUEUE, priority=HIGH, keep=0, result_ttl=0)
        async def urgent() -> None:
            self.began.append(HIGH)
            if not self.is_over:
                await app.enqueue("urgent")

        @app.task(name="low", queue=QUEUE, priority=LOW, keep=0, result_ttl=0)
        async def low() -> None:
            self.began.append(LOW)

    async def enqueue(self) -> None:
        await self.app.enqueue_many(self.app.tasks["urgent"].job() for _ in range(BACKLOG))
        await self.app.enqueue_many(self.app.tasks["low"].job() for _ in range(TEN))

    async def begins(self, count: int, priority: int) -> None:
        await until(
            lambda: self.began.count(priority) >= count,
            within=30,
            what=f"{count} jobs of priority {priority} begin",
        )

    def low_at(self) -> list[int]:
        """Return how many jobs had begun at each of the low ones, itself included."""
        return [at for at, priority in enumerate(self.began, start=1) if priority == LOW]


@pytest.fixture
def load(app: App[None]) -> Load:
    return Load(app)


@pytest.mark.parametrize(("workers", "slots"), [(1, 1), (2, 3)], ids=["one slot", "two workers"])
async def test_low_jobs_have_their_share_of_an_endless_urgent_load(
    load: Load, workers: int, slots: int
) -> None:
    # BC-88: strict order starved what is not urgent.
    every = 4
    await load.queue.configure(aging=every)
    await load.enqueue()
    async with AsyncExitStack() as stack:
        for _ in range(workers):
            worker = Worker(load.app, [QUEUE], concurrency=slots, emit=EventLog())
            await stack.enter_async_context(running(worker))
        await load.begins(TEN, LOW)
        stats = await load.queue.stats()
        assert stats.queued + stats.active >= BACKLOG - workers * slots
    # What several have claimed begins in any order among them.
    others = 0 if workers == 1 else 2 * workers * slots
    bounds = [every * n + others for n in range(1, TEN + 1)]
    assert all(at <= bound for at, bound in zip(load.low_at(), bounds, strict=True)), load.low_at()
    # And no more than that: what is urgent has the rest.
    assert load.low_at()[-1] >= every * TEN - others


async def test_without_a_share_low_jobs_wait_until_nothing_urgent_is_there(load: Load) -> None:
    # BC-88: strict, as it is unless the queue says otherwise.
    await load.enqueue()
    async with running(Worker(load.app, [QUEUE], concurrency=1, emit=EventLog())):
        await load.begins(4 * BACKLOG, HIGH)
        assert load.low_at() == []
        load.is_over = True
        await load.begins(TEN, LOW)
    assert set(load.began[:-TEN]) == {HIGH}


class Hall:
    """Long jobs that hold their slot until the hall is open, and urgent ones that must not wait."""

    def __init__(self, app: App[None]) -> None:
        self.app = app
        self.inside = 0
        self.is_open = asyncio.Event()

        @app.task(name="long", queue="long")
        async def long() -> None:
            self.inside += 1
            await self.is_open.wait()

        @app.task(name="urgent", queue="urgent")
        async def urgent() -> str:
            return "done"

        @app.task(name="page", queue="long", needs="urgent")
        async def page() -> str:
            return "done"

    async def fill(self) -> None:
        await self.app.enqueue_many(self.app.tasks["long"].job() for _ in range(TEN))

    async def answers(self, task: str) -> None:
        """Have a few urgent jobs done, one after another, while the long ones go on."""
        for _ in range(3):
            call = self.app.tasks[task].options(wait_timeout=patience(30))
            assert await call.enqueue_and_wait() == "done"
        assert not self.is_open.is_set()


@pytest.fixture
def hall(app: App[None]) -> Hall:
    return Hall(app)


async def test_slots_of_a_lane_are_kept_for_what_needs_it(app: App[None], hall: Hall) -> None:
    # BC-88: long low jobs occupied all slots. A lane has slots of its own.
    await hall.fill()
    worker = Worker(app, ["long"], lanes={"default": 3, "urgent": 1}, emit=EventLog())
    async with running(worker):
        await until(lambda: hall.inside == 3, within=30, what="all other slots are taken")
        await hall.answers("page")
        assert hall.inside == 3
        hall.is_open.set()


async def test_a_queue_that_may_not_run_more_leaves_slots_to_others(
    app: App[None], hall: Hall
) -> None:
    # BC-88, by a bound of the queue of the long ones.
    await app.queue("long").configure(max_active=3)
    await hall.fill()
    async with running(Worker(app, ["long", "urgent"], concurrency=4, emit=EventLog())):
        await until(lambda: hall.inside == 3, within=30, what="as many run as may")
        await hall.answers("urgent")
        assert hall.inside == 3
        hall.is_open.set()


async def test_a_worker_for_one_queue_alone_has_its_slots_for_it(
    app: App[None], hall: Hall
) -> None:
    # BC-88, by a worker of its own.
    await hall.fill()
    both = Worker(app, ["long", "urgent"], concurrency=3, emit=EventLog())
    alone = Worker(app, ["urgent"], concurrency=1, emit=EventLog())
    async with running(both), running(alone):
        await until(lambda: hall.inside == 3, within=30, what="all slots of one are taken")
        await hall.answers("urgent")
        hall.is_open.set()


async def test_without_room_kept_an_urgent_job_is_the_next(app: App[None]) -> None:
    # BC-88: no running job is stopped for it, and no waiting one comes before it.
    began: list[str] = []
    go_on = asyncio.Event()

    @app.task(name="low", queue=QUEUE, priority=LOW)
    async def low() -> None:
        began.append("low")
        if len(began) <= 2:
            await go_on.wait()

    @app.task(name="urgent", queue=QUEUE, priority=HIGH)
    async def urgent() -> None:
        began.append("urgent")

    await app.enqueue_many(low.job() for _ in range(TEN))
    async with running(Worker(app, [QUEUE], concurrency=2, emit=EventLog())):
        await until(lambda: len(began) == 2, within=30, what="all slots are taken")
        job = await urgent.enqueue()
        assert (await job.status()).state is JobState.QUEUED
        go_on.set()
        await until(lambda: len(began) == TEN + 1, within=30, what="all have begun")
    assert began.index("urgent") in (2, 3)

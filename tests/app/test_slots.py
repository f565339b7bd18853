"""Heavy jobs with real workers on every storage: never more than a worker's slots, nobody starves.

What handlers note outside of headrace proves how many slots were held at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import anyio
import pytest
import redis

from headrace import App, InvalidOption, JobState, Worker
from headrace.testing import EventLog, Kit, running
from tests.support.calls import calls
from tests.support.jobs import ended, reached
from tests.support.until import until

SLOTS = 4


class Ledger:
    """How many slots are held of a worker, now and at most, and in which order jobs began."""

    def __init__(self, app: App[None]) -> None:
        self.held = 0
        self.most = 0
        self.began: list[str] = []
        self.doors: dict[str, anyio.Event] = {}
        self.is_open = False

        @app.task(name="light")
        async def light(label: str) -> None:
            await self._hold(label, 1)

        @app.task(name="heavy", slots=3)
        async def heavy(label: str) -> None:
            await self._hold(label, 3)

        @app.task(name="whole", slots=SLOTS)
        async def whole(label: str) -> None:
            await self._hold(label, SLOTS)

    async def _hold(self, label: str, slots: int) -> None:
        self.held += slots
        self.most = max(self.most, self.held)
        self.began.append(label)
        try:
            if not self.is_open:
                await self.door(label).wait()
        finally:
            self.held -= slots

    def door(self, label: str) -> anyio.Event:
        return self.doors.setdefault(label, anyio.Event())

    def let_all_go(self) -> None:
        self.is_open = True
        for door in self.doors.values():
            door.set()

    def holds(self, slots: int) -> Callable[[], bool]:
        return lambda: self.held == slots

    async def runs(self, *labels: str) -> None:
        await until(lambda: self.began == [*labels], what=f"{labels} run, not {self.began}")


@pytest.fixture
def ledger(app: App[None]) -> Ledger:
    return Ledger(app)


def a_worker(app: App[None], slots: int = SLOTS, **options: Any) -> Worker:
    return Worker(app, concurrency=slots, emit=EventLog(), **options)


async def test_a_worker_never_runs_more_than_its_slots(app: App[None], ledger: Ledger) -> None:
    ledger.is_open = True
    jobs = [await app.enqueue(("light", "heavy", "whole")[n % 3], f"{n}") for n in range(60)]
    async with running(a_worker(app)):
        for job in jobs:
            await ended(job, within=60)
    assert ledger.most == SLOTS
    assert sorted(ledger.began, key=int) == [f"{n}" for n in range(60)]


async def test_a_heavy_job_at_the_head_is_not_starved_by_a_stream_of_light_ones(
    app: App[None], ledger: Ledger
) -> None:
    for label in "abc":
        await app.enqueue("light", label)
    async with running(a_worker(app)):
        await ledger.runs("a", "b", "c")
        await app.enqueue("heavy", "h")
        for label in "defgh":
            await app.enqueue("light", label)
        for label in "ab":
            ledger.door(label).set()
        await ledger.runs("a", "b", "c", "h")
        ledger.door("h").set()
        await until(lambda: len(ledger.began) == 7, what="the light ones follow")
        assert ledger.most == SLOTS
        ledger.let_all_go()


async def test_a_worker_that_waits_for_slots_asks_for_nothing_meanwhile(
    app: App[None], redis_url: str
) -> None:
    ledger = Ledger(app)
    labels = [f"{n}" for n in range(20)]
    await app.enqueue_many(app.tasks["light"].job(label) for label in labels)
    with redis.Redis.from_url(redis_url, decode_responses=True) as server:
        async with running(a_worker(app, 20)):
            await until(lambda: ledger.held == 20, what="all slots are taken")
            await app.tasks["heavy"].options(slots=20).enqueue("whole")
            since = time.monotonic()
            with calls(server) as seen:
                for n, label in enumerate(labels[:19], start=1):
                    ledger.door(label).set()
                    await until(ledger.holds(20 - n), what=f"{n} slots are free")
                    await app.enqueue("light", f"later {label}")
            # One learns of the need, and one may pass on a token; else it looks now and then.
            asked = [verb for verb, _ in seen].count("claim")
            assert asked <= 2 + (time.monotonic() - since) / 2.5
            assert sorted(ledger.began, key=int) == labels
            ledger.door(labels[19]).set()
            await until(lambda: ledger.began[20:] == ["whole"], what="it has its slots")
            ledger.let_all_go()


async def test_slots_are_not_kept_for_a_job_that_is_gone(app: App[None], ledger: Ledger) -> None:
    await app.enqueue("light", "a")
    async with running(a_worker(app)):
        await ledger.runs("a")
        whole = await app.enqueue("whole", "w")
        await app.enqueue("light", "b")
        await whole.cancel()
        await until(lambda: ledger.began == ["a", "b"], within=10, what="b runs beside a")
        ledger.let_all_go()


async def test_a_worker_that_is_too_small_passes_a_heavy_job_over_for_one_that_is_not(
    app: App[None], ledger: Ledger
) -> None:
    queue_app: App[None] = App(app.url, tenant=app.tenant)
    small = Ledger(queue_app)
    small_tasks = {name: queue_app.tasks[name] for name in ("light",)}
    queue_app.tasks.clear()
    queue_app.tasks.update(small_tasks)
    small.is_open = ledger.is_open = True
    heavy = await app.enqueue("heavy", "h")
    lights = [await app.enqueue("light", label) for label in "abc"]
    async with queue_app, running(a_worker(queue_app, 2)):
        for job in lights:
            await reached(job, JobState.COMPLETED)
        assert (await heavy.status()).state is JobState.QUEUED
        assert small.began == ["a", "b", "c"]
        async with running(a_worker(app)):
            await reached(heavy, JobState.COMPLETED)
    assert ledger.began == ["h"]


async def test_a_heavy_job_that_is_put_back_returns_to_the_head_with_its_slots(
    app: App[None], ledger: Ledger
) -> None:
    heavy = await app.enqueue("heavy", "h")
    async with running(a_worker(app, shutdown_timeout=0)):
        await ledger.runs("h")
        await app.enqueue("whole", "w")
    status = await heavy.status()
    assert (status.state, status.slots, status.stalls) == (JobState.QUEUED, 3, 0)
    async with running(a_worker(app)):
        await ledger.runs("h", "h")
        assert ledger.held == 3
        ledger.let_all_go()
        await ended(heavy)
        await until(lambda: ledger.began[2:] == ["w"], what="the next has the slots")


async def test_a_call_says_its_own_slots(app: App[None], ledger: Ledger) -> None:
    light = app.tasks["light"]
    job = await light.options(slots=2).enqueue("a")
    assert (await job.status()).slots == 2
    other = await app.task_ref("light", queue="default").options(slots=3).enqueue(label="b")
    async with running(a_worker(app)):
        await ledger.runs("a")
        ledger.door("a").set()
        await ledger.runs("a", "b")
        ledger.let_all_go()
        await ended(other)


async def test_a_kit_runs_jobs_of_any_slots(app: App[None], ledger: Ledger) -> None:
    ledger.is_open = True
    async with Kit(app) as kit:
        await app.enqueue("light", "a")
        await app.tasks["heavy"].options(slots=1_000).enqueue("h")
        await app.enqueue("whole", "w")
        assert len(await kit.run_until_idle(concurrency=10)) == 3
    assert sorted(ledger.began) == ["a", "h", "w"]


@pytest.mark.parametrize("slots", [0, -1, 1_001, 1.5, True, "2"], ids=repr)
def test_bad_slots_are_told_before_any_io(slots: Any) -> None:
    app: App[None] = App("redis://127.0.0.1:1")
    told = "slots=.* is out of bounds: use a whole number, 1 to 1,000"
    with pytest.raises(InvalidOption, match=told):
        app.task(slots=slots)
    Ledger(app)
    with pytest.raises(InvalidOption, match=told):
        app.tasks["light"].options(slots=slots)


def test_a_worker_refuses_tasks_that_it_could_never_run() -> None:
    app: App[None] = App("memory://")
    Ledger(app)
    with pytest.raises(InvalidOption, match="slots=3 of the task 'heavy' is more than the 2 of"):
        Worker(app, concurrency=2)
    with pytest.raises(InvalidOption, match="of its lane 'default' here"):
        Worker(app, lanes={"default": 3})
    Worker(app, lanes={"gpu": 1})  # they are left to others
    Worker(app, ["another"], concurrency=1)

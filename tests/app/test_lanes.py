"""Named lanes with real workers on every storage: who takes what, and how many at once."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from headrace import App, InvalidOption, JobState, Worker
from headrace.events import LaneNotServed
from headrace.testing import EventLog, running
from tests.apps import slots_app
from tests.apps.slots_app import Point
from tests.support.jobs import ended, reached
from tests.support.until import patience, until

START_S = 30.0


class Hall:
    """Handlers that hold until they are let go, and how many of each kind are inside."""

    def __init__(self, app: App[None]) -> None:
        self.inside: dict[str, int] = {"cpu": 0, "gpu": 0}
        self.most: dict[str, int] = {"cpu": 0, "gpu": 0}
        self.go = anyio.Event()

        @app.task(name="cpu")
        async def cpu() -> None:
            await self._hold("cpu")

        @app.task(name="gpu", needs="gpu")
        async def gpu() -> None:
            await self._hold("gpu")

    async def _hold(self, kind: str) -> None:
        self.inside[kind] += 1
        self.most[kind] = max(self.most[kind], self.inside[kind])
        try:
            await self.go.wait()
        finally:
            self.inside[kind] -= 1


@pytest.fixture
def hall(app: App[None]) -> Hall:
    return Hall(app)


async def test_each_lane_has_its_own_slots_and_neither_holds_up_the_other(
    app: App[None], hall: Hall
) -> None:
    jobs = [await app.enqueue(name) for name in ("gpu",) * 5 + ("cpu",) * 5]
    async with running(Worker(app, lanes={"default": 3, "gpu": 2}, emit=EventLog())):
        await until(lambda: hall.inside == {"cpu": 3, "gpu": 2}, what="both lanes are full")
        hall.go.set()
        for job in jobs:
            await ended(job)
    assert hall.most == {"cpu": 3, "gpu": 2}


async def test_a_lane_that_is_not_named_is_left_to_others(app: App[None], hall: Hall) -> None:
    hall.go.set()
    light, heavy = await app.enqueue("cpu"), await app.enqueue("gpu")
    async with running(Worker(app, lanes=["gpu"], emit=EventLog())):
        await reached(heavy, JobState.COMPLETED)
        assert (await light.status()).state is JobState.QUEUED
    heavy = await app.enqueue("gpu")
    async with running(Worker(app, emit=EventLog())):
        await reached(light, JobState.COMPLETED)
        assert (await heavy.status()).state is JobState.QUEUED


async def test_a_producer_that_knows_only_the_name_is_told_the_lane_by_workers(
    app: App[None], hall: Hall
) -> None:
    hall.go.set()
    producer: App[None] = App(app.url, tenant=app.tenant)
    async with producer, running(Worker(app, lanes=["default"], emit=EventLog())) as worker:
        await until(lambda: worker.is_ready, what="it has said which tasks it knows")
        job = await producer.enqueue("gpu", queue="default")
        assert (await job.status()).lane == "gpu"


async def test_a_job_from_before_its_task_needed_a_lane_goes_back_to_who_serves_it(
    app: App[None], hall: Hall
) -> None:
    hall.go.set()
    producer: App[None] = App(app.url, tenant=app.tenant)
    async with producer:
        job = await producer.enqueue("gpu", queue="default")
    async with running(Worker(app, lanes=["default"], emit=EventLog())):
        status = await reached(job, JobState.SCHEDULED)
    assert status.put_back is not None
    assert "serves the lane 'gpu'" in status.put_back.message


async def test_a_process_task_that_needs_a_lane_holds_a_slot_of_it_and_runs_in_a_process(
    app: App[None],
) -> None:
    app.task(name="mirror", executor="process", needs="gpu")(slots_app.mirror.function)
    worker = Worker(app, lanes={"gpu": 2}, process_slots=1, emit=EventLog())
    assert worker.lanes == {"gpu": 2}
    async with running(worker):
        jobs = [await app.enqueue("mirror", Point(n, 2)) for n in range(3)]
        for n, job in enumerate(jobs):
            assert await job.result(timeout=patience(START_S)) == Point(2, n)


async def test_workers_tell_their_lanes_and_warn_of_those_that_nobody_serves(
    app: App[None], hall: Hall
) -> None:
    log = EventLog()
    async with running(Worker(app, name="w", emit=log)):
        await log.wait(LaneNotServed)
        [found] = await until(app.queue("default").workers)
        assert found.lanes == {"default": 100}
    assert log.of(LaneNotServed) == [
        LaneNotServed(worker="w", queue="default", lane="gpu", tasks=["gpu"])
    ]


@pytest.mark.parametrize(
    ("lanes", "told"),
    [
        ("gpu", "pass a list of names or a dict of slots"),
        (7, "pass a list of names or a dict of slots"),
        ([], "lanes names none"),
        (["gpu", "gpu"], "the lane 'gpu' is named twice"),
        (["a b"], "lane 'a b' is not valid"),
        ([""], "lane '' is not valid"),
        ({"gpu": 0}, "slots of lane 'gpu'=0 is out of bounds"),
        ({"gpu": 10_001}, "is out of bounds: use a whole number, 1 to 10,000"),
        ({"gpu": 1.5}, "slots of lane 'gpu'=1.5 is out of bounds"),
        (["process"], "no task of the app runs in processes"),
    ],
    ids=["text", "number", "none", "twice", "blank", "empty", "zero", "many", "half", "no process"],
)
def test_bad_lanes_are_told_before_anything_runs(lanes: Any, told: str) -> None:
    app: App[None] = App("memory://")
    Hall(app)
    with pytest.raises(InvalidOption, match=told):
        Worker(app, lanes=lanes)


@pytest.mark.parametrize(
    ("lane", "told"),
    [
        ("default", "leave it out"),
        ("process", "executor='process'"),
        ("a b", "needs 'a b' is not valid"),
        ("", "needs '' is not valid"),
        (7, "is of type int"),
        ("g" * 101, "is not valid"),
    ],
    ids=["default", "process", "blank", "empty", "number", "long"],
)
def test_a_task_can_only_need_a_lane_that_has_a_name_of_its_own(lane: Any, told: str) -> None:
    app: App[None] = App("memory://")
    with pytest.raises(InvalidOption, match=told):
        app.task(needs=lane)


def test_processes_are_counted_once_and_are_there_for_who_needs_them() -> None:
    app: App[None] = App("memory://")
    app.task(name="m", executor="process", needs="gpu")(slots_app.mirror.function)
    with pytest.raises(InvalidOption, match="process_slots=0, but m of the lane 'gpu' runs in"):
        Worker(app, lanes=["gpu"], process_slots=0)
    with pytest.raises(InvalidOption, match="process_slots=2 and the lane process with 3 slots"):
        Worker(app, lanes={"process": 3}, process_slots=2)
    assert Worker(app, process_slots=0).lanes == {"default": 100}
    app.task(name="n", executor="process")(slots_app.mirror.function)
    assert Worker(app, lanes={"process": 3}).lanes == {"process": 3}
    assert Worker(app, ["default"], process_slots=2).lanes == {"default": 100, "process": 2}

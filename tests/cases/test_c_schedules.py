"""Schedules that other job queues got wrong: each occurrence once, in time, and never lost."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from headrace import App, At, Context, Every, Scheduler, Worker
from headrace.app import clients_of
from headrace.events import ScheduleFired, ScheduleSkipped
from headrace.schedule import occurrence_id
from headrace.testing import EventLog, running
from tests.support.redis_server import RedisServer
from tests.support.schedules import JOB, now_of, put, stored
from tests.support.until import until

SCHEDULERS = 10


@asynccontextmanager
async def scheduling(*schedulers: Scheduler) -> AsyncIterator[None]:
    """Run schedulers while the block runs."""
    async with anyio.create_task_group() as group:
        for scheduler in schedulers:
            group.start_soon(scheduler.run)
        yield
        for scheduler in schedulers:
            scheduler.stop()


def counting(app: App[None], *, every: float) -> Counter[str]:
    """Declare a schedule whose jobs leave nothing behind; return how often each has run."""
    ran: Counter[str] = Counter()

    @app.every(every, id="tick")
    @app.task(name="tick", queue="ticks", keep=0, result_ttl=0)
    async def tick(context: Context[None]) -> None:
        ran[context.job_id] += 1

    return ran


async def has_run(ran: Counter[str], count: int) -> None:
    """Wait until so many jobs have run."""
    await until(lambda: len(ran) >= count, within=20, what=f"{count} jobs have run")


async def each_ran_once(app: App[None], ran: Counter[str], *, every_ms: int) -> None:
    """Pause the schedule, and see that each occurrence until then has run once."""
    await app.schedules.pause("tick")
    storage = clients_of(app).current().storage

    async def are_equal() -> bool:
        body = await stored(storage, "tick")
        assert body is not None
        first_ms = Every(every_ms / 1000).after(body.created_ms)
        assert first_ms is not None
        assert body.last_ms is not None
        instants = range(first_ms, body.last_ms + 1, every_ms)
        return ran == Counter(occurrence_id("tick", instant) for instant in instants)

    await until(are_equal, within=10, what="each occurrence has run once")


async def test_a_job_that_is_over_at_once_does_not_come_again_for_its_occurrence(
    app: App[None],
) -> None:
    # BC-42: remembered by occurrence, and not by the job's being there.
    ran = counting(app, every=0.1)
    schedulers = [Scheduler(app, emit=EventLog()) for _ in range(SCHEDULERS)]
    async with running(Worker(app, scheduler=False, emit=EventLog())), scheduling(*schedulers):
        await until(lambda: len(ran) >= 15, within=20)
        await each_ran_once(app, ran, every_ms=100)


@pytest.mark.parametrize("late_ms", [1, 3_600_000, 864_000_000], ids=["1ms", "1h", "10d"])
async def test_an_occurrence_that_is_late_comes_by_the_rule_and_the_next_ones_too(
    app: App[None], late_ms: int
) -> None:
    # BC-44: what is due in the past brings no negative expiry.
    ran: list[str] = []

    @app.task(name="report", queue="reports")
    async def report(context: Context[None]) -> None:
        ran.append(context.job_id)

    storage = clients_of(app).current().storage
    now_ms = await now_of(storage)
    job = replace(JOB, expires_in_ms=60_000)
    timing = At(datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=now_ms - late_ms))
    await put(storage, "late", timing, job=job, next_ms=now_ms - late_ms, catch_up="latest")
    await put(storage, "next", Every(0.2), job=job)
    async with running(Worker(app, ["reports"], emit=EventLog())):
        await until(lambda: len([i for i in ran if i.startswith("next:")]) >= 2, within=10)
        await until(lambda: [i for i in ran if i.startswith("late:")], within=10)
    assert [i for i in ran if i.startswith("late:")] == [occurrence_id("late", now_ms - late_ms)]


async def test_a_worker_that_does_not_know_a_schedule_does_not_drop_it(
    storage_url: str, app: App[None]
) -> None:
    # BC-48: beside one that knows it, whichever of them fires it.
    ran = counting(app, every=0.2)
    older: App[None] = App(storage_url, tenant=app.tenant, name=app.name)

    @older.task(name="other", queue="others")
    async def other() -> None: ...

    logs = [EventLog(), EventLog()]
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(older)
        await stack.enter_async_context(running(Worker(older, emit=logs[0])))
        await stack.enter_async_context(running(Worker(app, emit=logs[1])))
        await until(lambda: len(ran) >= 6, within=30)
        again = Worker(older, emit=EventLog())
        await stack.enter_async_context(running(again))
        await until(lambda: len(ran) >= 12, within=30)
        await each_ran_once(app, ran, every_ms=200)
        assert await app.schedules.get("tick") is not None


@pytest.mark.parametrize("minutes", [5, -5])
async def test_a_worker_whose_clock_is_wrong_fires_when_it_is_time_by_the_storages(
    app: App[None], monkeypatch: pytest.MonkeyPatch, minutes: int
) -> None:
    # BC-49: all times come from the storage.
    ran = counting(app, every=0.2)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 60 * minutes)
    log = EventLog()
    async with running(Worker(app, emit=log)):
        await log.wait(ScheduleFired, 5)
        await each_ran_once(app, ran, every_ms=200)
    assert all(event.late_ms >= 0 for event in log.of(ScheduleFired))
    assert log.of(ScheduleSkipped) == []


async def test_what_is_scheduled_comes_once_although_redis_was_started_anew(
    own_server: RedisServer,
) -> None:
    # BC-50: a one-off and a schedule, with an append-only file.
    async with App(own_server.url, tenant="cases") as app:
        await outlasts_a_restart(app, own_server)


async def outlasts_a_restart(app: App[None], server: RedisServer) -> None:
    ran = counting(app, every=0.25)
    storage = clients_of(app).current().storage
    async with running(Worker(app, emit=EventLog())):
        at_ms = await now_of(storage) + 1500
        at = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=at_ms)
        await app.schedules.put("once", app.tasks["tick"].job(), At(at))
        await until(lambda: len(ran) >= 2, within=10)
        server.kill()
        server.start()
        once = occurrence_id("once", at_ms)
        await until(lambda: once in ran, within=20)
        assert ran.pop(once) == 1
        await each_ran_once(app, ran, every_ms=250)


async def test_what_is_scheduled_comes_once_although_its_only_worker_was_started_anew(
    tmp_path: Path,
) -> None:
    # BC-50, without a server.
    async with App(f"file://{tmp_path}/data", tenant="cases") as app:
        ran = counting(app, every=0.25)
        for count in (2, 5):
            async with running(Worker(app, emit=EventLog())):
                await has_run(ran, count)
            await app.aclose()
        async with running(Worker(app, emit=EventLog())):
            await each_ran_once(app, ran, every_ms=250)


@pytest.fixture
def own_server() -> Iterator[RedisServer]:
    """Return a server of the test's own that writes each command to its append-only file."""
    with RedisServer("--appendfsync", "always", appendonly=True) as server:
        yield server

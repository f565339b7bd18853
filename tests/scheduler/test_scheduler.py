"""A scheduler alone, and the one in every worker."""

from __future__ import annotations

import secrets
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import anyio
import pytest

from headrace import (
    App,
    InvalidOption,
    Scheduler,
    StorageRefused,
    StorageUnavailable,
    Worker,
)
from headrace.app import clients_of
from headrace.events import (
    ScheduleFired,
    SchedulerMissing,
    SchedulerStarted,
    SchedulerStopped,
    SchedulesSynced,
)
from headrace.storage import RELEASE_LEFT_MS, Storage, TakenSchedules
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.testing import EventLog, ManualClock, running
from tests.storage.foreign import OldStorage
from tests.support.openings import opening
from tests.support.until import until

ALIVE_MS = 15_000


@pytest.fixture
async def ticking(storage_url: str) -> AsyncIterator[App[None]]:
    """Return an app that declares a schedule of five occurrences a second."""
    async with declaring(storage_url) as app:
        yield app


@asynccontextmanager
async def declaring(url: str) -> AsyncIterator[App[None]]:
    app: App[None] = App(url, tenant=f"test-{secrets.token_hex(6)}", name="shop")

    @app.every(0.2)
    @app.task(name="tick", queue="ticks")
    async def tick() -> None: ...

    async with app:
        yield app


@asynccontextmanager
async def scheduling(scheduler: Scheduler) -> AsyncIterator[None]:
    """Run a scheduler while the block runs."""
    async with anyio.create_task_group() as group:
        group.start_soon(scheduler.run)
        await until(lambda: scheduler.is_ready, within=10)
        yield
        scheduler.stop()


async def test_a_worker_fires_what_its_app_declares_and_runs_it(ticking: App[None]) -> None:
    log = EventLog()
    async with running(Worker(ticking, emit=log)):
        [fired, *_] = await log.wait(ScheduleFired)
        await ticking.job(fired.job_id, queue="ticks").result(timeout=10)
    assert [event.added for event in log.of(SchedulesSynced)] == [1]


async def test_a_scheduler_alone_fires_and_runs_nothing(ticking: App[None]) -> None:
    log = EventLog()
    async with scheduling(Scheduler(ticking, emit=log, name="alone")):
        [fired, *_] = await log.wait(ScheduleFired)
    status = await ticking.job(fired.job_id, queue="ticks").status()
    assert status.starts == 0
    assert log.of(SchedulerStarted) == [SchedulerStarted(scheduler="alone", app="shop")]
    assert log.of(SchedulerStopped) == [SchedulerStopped(scheduler="alone")]


async def test_a_scheduler_that_declares_nothing_fires_what_is_stored(ticking: App[None]) -> None:
    first = EventLog()
    async with scheduling(Scheduler(ticking, emit=first)):
        await first.wait(SchedulesSynced)
    other: App[None] = App(ticking.url, tenant=ticking.tenant, name="none")
    log = EventLog()
    async with other, scheduling(Scheduler(other, declares=False, emit=log)):
        await log.wait(ScheduleFired)
    assert log.of(SchedulerStarted)[0].app == ""
    assert log.of(SchedulesSynced) == []


async def nothing_is_stored(app: App[None], log: EventLog) -> None:
    storage = clients_of(app).current().storage
    assert (await storage.list_schedules()).schedules == []
    assert log.of(ScheduleFired) == []


async def test_a_worker_without_a_scheduler_stores_and_fires_nothing(ticking: App[None]) -> None:
    log = EventLog()
    async with running(Worker(ticking, emit=log, scheduler=False)):
        await (await ticking.tasks["tick"].enqueue()).result(timeout=10)
    await nothing_is_stored(ticking, log)


async def test_a_worker_in_a_burst_stores_and_fires_nothing(ticking: App[None]) -> None:
    log = EventLog()
    await ticking.tasks["tick"].enqueue()
    await Worker(ticking, emit=log, burst=True).run()
    await nothing_is_stored(ticking, log)


async def test_a_stop_before_the_start_ends_it_at_once(ticking: App[None]) -> None:
    log = EventLog()
    scheduler = Scheduler(ticking, emit=log)
    scheduler.stop()
    await scheduler.run()
    assert [type(event) for event in log.events] == [SchedulerStopped]
    assert not scheduler.is_ready
    assert scheduler.is_alive


async def test_another_thread_may_stop_it(ticking: App[None]) -> None:
    scheduler = Scheduler(ticking, emit=EventLog())
    async with anyio.create_task_group() as group:
        group.start_soon(scheduler.run)
        await until(lambda: scheduler.is_ready, within=10)
        threading.Thread(target=scheduler.stop).start()
    assert not scheduler.is_ready


@pytest.mark.parametrize("name", ["", "a\nb"])
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidOption, match="scheduler name"):
        Scheduler(App("memory://"), name=name)


async def test_a_coroutine_function_is_no_emit() -> None:
    async def emit(_event: object) -> None: ...

    with pytest.raises(InvalidOption, match="plain function"):
        Scheduler(App("memory://"), emit=emit)  # type: ignore[arg-type]


async def test_a_storage_without_the_role_has_workers_without_schedulers() -> None:
    async with declaring("memory://") as app:
        storage = OldStorage(SqliteStorage(f"memory://old-{secrets.token_hex(6)}"))
        with clients_of(app).replaced(opening(lambda: cast(Storage, storage))):
            log = EventLog()
            async with running(Worker(app, emit=log, name="w")):
                await (await app.tasks["tick"].enqueue()).result(timeout=10)
            assert log.of(SchedulerMissing) == [SchedulerMissing(worker="w", storage="OldStorage")]
            with pytest.raises(StorageRefused, match="OldStorage keeps no schedules"):
                await Scheduler(app, emit=EventLog()).run()
            await app.aclose()


class Failing(SqliteStorage):
    """A storage whose schedules can't be taken for a while."""

    error: Exception | None = None

    async def take_schedules(
        self, *, limit: int, hold_ms: int, channel: str = ""
    ) -> TakenSchedules:
        """Fail, or take."""
        if self.error is not None:
            raise self.error
        return await super().take_schedules(limit=limit, hold_ms=hold_ms, channel=channel)


async def test_a_worker_whose_scheduler_is_down_is_not_ready() -> None:
    async with declaring("memory://") as app:
        storage = Failing(f"memory://down-{secrets.token_hex(6)}")
        with clients_of(app).replaced(opening(lambda: storage)):
            async with running(Worker(app, emit=EventLog())) as worker:
                storage.error = RuntimeError("a fault of ours")
                await until(lambda: not worker.is_ready)
                storage.error = None
                await until(lambda: worker.is_ready, within=20)
            await app.aclose()


async def test_a_scheduler_is_ready_again_after_an_outage() -> None:
    async with declaring("memory://") as app:
        storage = Failing(f"memory://away-{secrets.token_hex(6)}")
        with clients_of(app).replaced(opening(lambda: storage)):
            scheduler = Scheduler(app, emit=EventLog())
            async with scheduling(scheduler):
                storage.error = StorageUnavailable("away")
                await until(lambda: not scheduler.is_ready)
                assert scheduler.is_alive
                storage.error = None
                await until(lambda: scheduler.is_ready, within=20)
            await app.aclose()


@pytest.mark.parametrize("is_worker", [True, False], ids=["worker", "scheduler"])
async def test_a_clean_end_says_that_the_release_has_a_process_less(*, is_worker: bool) -> None:
    clock = ManualClock(ticking=True)
    async with declaring("memory://") as app:
        storage = SqliteStorage(f"memory://left-{secrets.token_hex(6)}", clock=clock)
        storage.tenant = app.tenant
        with clients_of(app).replaced(opening(lambda: storage)):
            log = EventLog()
            run = Worker(app, emit=log) if is_worker else Scheduler(app, emit=log)
            async with anyio.create_task_group() as group:
                group.start_soon(run.run)
                await log.wait(SchedulesSynced)
                run.stop()
            clock.advance_ms(RELEASE_LEFT_MS + 1)
            standing = await storage.join_release("shop", "other", alive_ms=ALIVE_MS)
            assert standing.alive == ["other"]
            await app.aclose()


async def test_a_worker_and_a_scheduler_share_what_is_due(ticking: App[None]) -> None:
    logs = [EventLog(), EventLog()]
    scheduler = Scheduler(ticking, emit=logs[1])

    def enqueued() -> list[str]:
        """Return the jobs that were fired; who stands still for a second may find one fired."""
        fired = [event for log in logs for event in log.of(ScheduleFired)]
        return [event.job_id for event in fired if event.outcome == "enqueued"]

    async with running(Worker(ticking, emit=logs[0])), scheduling(scheduler):
        await until(lambda: len(enqueued()) >= 8, within=20)
    assert len(set(enqueued())) == len(enqueued())


PLAIN_WORKER = """
import asyncio, sys
from headrace import App, Worker
from headrace.events import ScheduleFired

app = App("memory://")

@app.every(0.1)
@app.task
async def tick() -> None: ...

def emit(event: object) -> None:
    if isinstance(event, ScheduleFired):
        worker.stop()

worker = Worker(app, emit=emit)
asyncio.run(worker.run())
rare = {"croniter", "dateutil", "difflib", "importlib.metadata", "zoneinfo"}
print(sorted(rare & set(sys.modules)))
"""


async def test_a_plain_worker_imports_nothing_that_few_need() -> None:
    ended = await anyio.run_process([sys.executable, "-c", PLAIN_WORKER], stderr=None)
    assert ended.stdout == b"[]\n"

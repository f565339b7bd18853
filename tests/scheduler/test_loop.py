"""The loop of a scheduler: when it looks, and what it waits out."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

import anyio
import pytest

from headrace.errors import StorageFull, StorageUnavailable
from headrace.events import ScheduleFired, SchedulesHeldUp
from headrace.guard import Guard
from headrace.listening import listen
from headrace.scheduler.service import SchedulerService
from headrace.storage import CallId, Storage, TakenSchedules
from headrace.storage.connect import open_storage
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.testing import EventLog
from headrace.timing import At, Every
from tests.support.schedules import JOB, QUEUE, now_of, put, stored
from tests.support.until import until

HOUR_S = 3600.0


@pytest.fixture
async def storage(storage_url: str) -> AsyncIterator[Storage]:
    opened = open_storage(storage_url, tenant=f"test-{secrets.token_hex(6)}")
    yield opened
    await opened.aclose()


@asynccontextmanager
async def firing(storage: Storage, log: EventLog, *, poll_s: float) -> AsyncIterator[None]:
    """Run a scheduler without an app while the block runs, from its first look on."""
    channel = storage.open_channel()
    service = SchedulerService(
        storage, None, channel=channel.name, emit=log, guard=Guard(log), poll_s=poll_s
    )
    async with anyio.create_task_group() as group:
        group.start_soon(partial(listen, channel, service.hear, guard=Guard(log)))
        async with anyio.create_task_group() as runs:
            runs.start_soon(service.run)
            await until(lambda: service.is_firing)
            yield
            service.stop()
        group.cancel_scope.cancel()


async def test_a_schedule_that_is_put_wakes_a_scheduler_that_would_sleep_for_long(
    storage: Storage,
) -> None:
    log = EventLog()
    async with firing(storage, log, poll_s=HOUR_S):
        at_ms = await now_of(storage) + 100
        at = At(datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=at_ms))
        await put(storage, "soon", at)
        [fired] = await log.wait(ScheduleFired)
    assert fired.schedule == "soon"
    assert fired.late_ms >= 0


async def test_a_scheduler_tells_a_word_about_schedules_from_one_about_jobs(
    storage: Storage,
) -> None:
    log = EventLog()
    heard: list[None] = []

    class Heard(SchedulerService):
        """Notes when it is woken."""

        def wake(self) -> None:
            heard.append(None)

    service = Heard(storage, None, emit=log, guard=Guard(log))
    async with anyio.create_task_group() as group:
        channel = storage.open_channel()
        group.start_soon(partial(listen, channel, service.hear, guard=Guard(log)))
        await until(lambda: len(heard) == 1, what="it has connected")
        await storage.take_schedules(limit=1, hold_ms=1, channel=channel.name)
        now_ms = await now_of(storage)
        await put(storage, "soon", Every(3600), next_ms=now_ms + 60_000)
        await until(lambda: len(heard) == 2, what="a schedule is due sooner")
        # This ends a job that it watches, which says nothing of schedules.
        job = JOB.request("job")
        await storage.enqueue(QUEUE, [job], call=CallId("client", 1))
        await storage.watch(QUEUE, ["job"], channel=channel.name)
        await storage.cancel(QUEUE, ["job"])
        await put(storage, "sooner", Every(3600), next_ms=now_ms + 30_000)
        await until(lambda: len(heard) == 3, what="another is due sooner still")
        group.cancel_scope.cancel()


async def test_a_scheduler_looks_by_itself_where_no_word_comes(storage: Storage) -> None:
    log = EventLog()
    async with firing(storage, log, poll_s=0.05):
        # As one writes who tells nobody.
        await put(storage, "soon", Every(0.1), wakes=False)
        await log.wait(ScheduleFired)


class Failing(SqliteStorage):
    """A storage that fails for some calls."""

    def prepare(self, error: Exception, times: int) -> None:
        """Fail so many times."""
        self.error = error
        self.left = times

    async def take_schedules(
        self, *, limit: int, hold_ms: int, channel: str = ""
    ) -> TakenSchedules:
        """Fail, or take."""
        if self.left:
            self.left -= 1
            raise self.error
        return await super().take_schedules(limit=limit, hold_ms=hold_ms, channel=channel)


@pytest.mark.parametrize(
    ("error", "told"),
    [(StorageUnavailable("away"), 0), (StorageFull("no room"), 1)],
    ids=["away", "full"],
)
async def test_a_storage_that_is_away_or_full_is_waited_for(error: Exception, told: int) -> None:
    storage = Failing(f"memory://loop-{secrets.token_hex(6)}")
    storage.prepare(error, 3)
    log = EventLog()
    await put(storage, "soon", Every(0.1))
    async with firing(storage, log, poll_s=0.05):
        await log.wait(ScheduleFired)
    assert len(log.of(SchedulesHeldUp)) == told
    assert {type(event) for event in log.events} <= {ScheduleFired, SchedulesHeldUp}
    await storage.aclose()


async def test_a_loop_that_dies_is_started_again_and_told_of() -> None:
    storage = Failing(f"memory://loop-{secrets.token_hex(6)}")
    storage.prepare(RuntimeError("a fault of ours"), 1)
    log = EventLog()
    await put(storage, "soon", Every(0.1))
    async with firing(storage, log, poll_s=0.05):
        await log.wait(ScheduleFired)
    assert [type(event).__name__ for event in log.events].count("LoopFailed") == 1
    body = await stored(storage, "soon")
    assert body is not None
    assert body.last_ms is not None
    await storage.aclose()

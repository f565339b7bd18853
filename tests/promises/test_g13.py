"""G13: at most one job an occurrence, with any number of schedulers, by written rules."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import anyio
import pytest

from headrace import App, Cron, EnqueueOutcome, Every, Worker
from headrace.app import clients_of
from headrace.events import ScheduleFired
from headrace.schedule import occurrence_id
from headrace.scheduler.step import FIRE_WITHIN_MS, Steps
from headrace.storage import Occurrence
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.testing import EventLog, ManualClock, running
from headrace.timing import Timing
from tests.support.schedules import JOB, QUEUE, history, now_of, put
from tests.support.until import until

NOON = datetime(2026, 3, 7, 12, tzinfo=UTC)
"""The day before the clocks of New York go forward."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
async def storage(clock: ManualClock) -> AsyncIterator[SqliteStorage]:
    opened = SqliteStorage(f"memory://g13-{secrets.token_hex(6)}", clock=clock)
    yield opened
    await opened.aclose()


async def fired(storage: SqliteStorage, schedule_id: str) -> list[str]:
    """Fire all that is due; return the instants of its jobs, and what else the history says."""
    steps = Steps(storage, emit=EventLog())
    while await steps.step() == 0:
        pass
    return [
        entry.job_id.partition(":")[2] or f"{entry.reason or entry.outcome} {entry.count}"
        for entry in await history(storage, schedule_id)
    ]


async def test_five_workers_bring_one_job_an_occurrence(app: App[None]) -> None:
    ran: list[str] = []
    logs = [EventLog() for _ in range(5)]

    @app.every(0.1)
    @app.task(name="tick")
    async def tick() -> None:
        ran.append("tick")

    async with running(Worker(app, emit=logs[0])), anyio.create_task_group() as group:
        others = [Worker(app, emit=log) for log in logs[1:]]
        for worker in others:
            group.start_soon(worker.run)
        await until(lambda: len(ran) >= 15, within=20)
        for worker in others:
            worker.stop()
    told = [event for log in logs for event in log.of(ScheduleFired)]
    brought = [event.job_id for event in told if event.outcome == "enqueued"]
    assert len(set(brought)) == len(brought) >= len(ran) >= 15


async def test_an_occurrence_is_fired_once_whatever_became_of_its_job(app: App[None]) -> None:
    """Its instant is remembered, so a job that failed, was cancelled or purged comes not again."""
    storage = clients_of(app).current().storage
    now_ms = await now_of(storage)
    job_id = occurrence_id("report", now_ms)
    occurrence = Occurrence("report", now_ms, JOB.request(job_id))
    assert await storage.fire(QUEUE, [occurrence], until_ms=now_ms + FIRE_WITHIN_MS) == [
        EnqueueOutcome.QUEUED
    ]
    await app.queue(QUEUE).purge("queued", job_id)
    again = await storage.fire(QUEUE, [occurrence], until_ms=now_ms + FIRE_WITHIN_MS)
    assert again == [EnqueueOutcome.DUPLICATE]
    assert (await app.queue(QUEUE).stats()).queued == 0


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [
        ("skip", ["catch_up 3"]),
        ("latest", ["catch_up 2", "2026-03-07T15:00:00Z"]),
        (2, ["catch_up 1", "2026-03-07T14:00:00Z", "2026-03-07T15:00:00Z"]),
    ],
    ids=["skip", "latest", "two"],
)
async def test_after_a_downtime_the_catch_up_rule_says_what_comes(
    storage: SqliteStorage, clock: ManualClock, catch_up: str | int, expected: list[str]
) -> None:
    await put(storage, "report", Every(3600), catch_up=catch_up)
    clock.advance(3.5 * 3600)
    assert await fired(storage, "report") == expected


@pytest.mark.parametrize(
    ("timing", "expected"),
    [
        (Cron("30 2 * * *", tz="America/New_York"), ["2026-03-08T07:00:00Z"]),
        (Cron("30 2 * * *", tz="America/New_York", dst="skip"), []),
        (
            Cron("30 */2 * * *", tz="America/New_York"),
            ["2026-03-08T05:30:00Z", "2026-03-08T08:30:00Z"],
        ),
    ],
    ids=["shift", "skip", "wildcard hour"],
)
async def test_a_local_time_that_a_clock_change_leaves_out_comes_by_the_written_rule(
    storage: SqliteStorage, clock: ManualClock, timing: Timing, expected: list[str]
) -> None:
    """On March 8, 2026 there is no 02:30 in New York: 01:59 is followed by 03:00."""
    clock.advance(16.5 * 3600)
    await put(storage, "report", timing)
    for _ in range(10):
        clock.advance(1800)
        await fired(storage, "report")
    assert await fired(storage, "report") == expected

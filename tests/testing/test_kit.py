"""Where a kit begins and ends, and what the app is before, in and after it."""

from __future__ import annotations

import asyncio
import gc
import secrets
import threading

import anyio
import pytest
from anyio.from_thread import start_blocking_portal

from headrace import App, InvalidOption, JobState, StorageUnavailable, UsageError
from headrace.app import clients_of
from headrace.events import QueueFenced
from headrace.job import ErrorInfo
from headrace.storage.sqlite.engine import engines
from headrace.testing import EventLog, Kit, ManualClock
from tests.apps import shop_app
from tests.apps.shop_app import app, bill, hold


async def test_the_app_is_on_its_own_storage_before_and_after() -> None:
    with pytest.raises(StorageUnavailable):
        await bill.enqueue(1)
    async with Kit(app):
        await bill.enqueue(1)
        await app.connect()
    with pytest.raises(StorageUnavailable):
        await bill.enqueue(1)
    await app.aclose()


async def test_every_kit_begins_empty() -> None:
    for _ in range(2):
        async with Kit(app) as kit:
            assert await app.queues() == []
            assert kit.enqueued() == []
            await bill.enqueue(1)
            assert await app.queues() == ["orders"]


async def test_what_an_app_had_open_rests_meanwhile() -> None:
    own: App[None] = App(f"memory://{secrets.token_hex(8)}")

    @own.task(queue="mine")
    async def work() -> None: ...

    async with own:
        client = clients_of(own).current()
        job = await work.enqueue()
        async with Kit(own):
            async with own:
                await work.enqueue()
            await own.queue("mine").pause()
        assert clients_of(own).current() is client
        stats = await own.queue("mine").stats()
        assert (stats.queued, stats.paused) == (1, False)
        assert (await job.status()).state is JobState.QUEUED


async def test_an_app_is_in_one_kit_at_a_time() -> None:
    async with Kit(app) as kit:
        with pytest.raises(UsageError, match="in a Kit already"):
            async with Kit(app):
                pass
        with pytest.raises(UsageError, match="in a Kit already"):
            async with kit:
                pass
        await bill.enqueue(1)
        kit.assert_enqueued(bill)


async def test_two_apps_have_a_kit_each() -> None:
    other: App[None] = App("redis://localhost:1", retry_for=0)

    @other.task(name="relay")
    async def relay(number: int) -> None:
        await bill.enqueue(number)

    async with Kit(other) as first, Kit(app) as second:
        await relay.enqueue(7)
        assert len(await first.run_until_idle()) == 1
        second.assert_enqueued(bill.job(7))
        first.assert_not_enqueued("tests.apps.shop_app.bill")


async def test_a_kit_is_used_inside_of_its_block() -> None:
    kit = Kit(app)
    with pytest.raises(UsageError, match="inside of `async with"):
        await kit.run_until_idle()
    async with kit:
        pass
    with pytest.raises(UsageError, match="inside of `async with"):
        kit.enqueued()
    with pytest.raises(InvalidOption, match="is no App"):
        Kit("app")  # type: ignore[arg-type]  # the point


async def test_bad_numbers_are_refused() -> None:
    async with Kit(app) as kit:
        with pytest.raises(InvalidOption, match="concurrency"):
            await kit.run_until_idle(concurrency=0)
        with pytest.raises(InvalidOption, match="limit"):
            await kit.run_until_idle(limit=0)
        with pytest.raises(InvalidOption, match="queue"):
            await kit.run_until_idle(queues=["no name"])
        with pytest.raises(InvalidOption, match="start"):
            await kit.perform(bill.job(1), start=0)


async def test_nothing_is_left_of_a_kit() -> None:
    threads = set(threading.enumerate())
    places = set(engines._engines)  # noqa: SLF001  # what would hold the memory
    tasks = asyncio.all_tasks()
    async with Kit(app) as kit:
        await bill.enqueue_and_wait(1)
        storage = clients_of(app).open_storage()
        assert set(threading.enumerate()) - threads
        assert len(await kit.job_events()) == 3
    assert set(threading.enumerate()) <= threads  # those of earlier tests may end meanwhile
    assert set(engines._engines) == places  # noqa: SLF001
    assert asyncio.all_tasks() == tasks
    with pytest.raises(StorageUnavailable, match="the kit that this storage belonged to has ended"):
        await storage.queues()


async def test_an_error_in_the_block_leaves_nothing_either() -> None:
    threads = set(threading.enumerate())

    async def fail() -> None:
        async with Kit(app):
            await bill.enqueue(1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert set(threading.enumerate()) <= threads
    async with Kit(app):
        await bill.enqueue(1)


def test_a_kit_needs_no_loop_of_its_own() -> None:
    threads = set(threading.enumerate())
    with Kit(app) as kit:
        asyncio.run(bill.enqueue(1))
        assert len(asyncio.run(kit.run_until_idle())) == 1
        assert asyncio.run(bill.enqueue_and_wait(2)) == "bill 2"
        anyio.run(kit.advance, 60)
        kit.assert_enqueued(bill, count=2)
    gc.collect()
    assert set(threading.enumerate()) <= threads


def test_code_in_the_loop_of_another_thread_is_in_the_kit_too() -> None:
    """Test clients of web frameworks run the application in a thread."""
    with Kit(app) as kit, start_blocking_portal() as portal:
        job = portal.call(bill.enqueue, 1)
        assert [attempt.result for attempt in asyncio.run(kit.run_until_idle())] == ["bill 1"]
        assert portal.call(job.result) == "bill 1"
        portal.call(app.aclose)


async def test_clock_and_events_may_be_brought() -> None:
    clock, log = ManualClock(), EventLog()
    async with Kit(app, clock=clock, events=log) as kit:
        await bill.enqueue(1)
        await kit.run_until_idle()
        await kit.advance(5)
    assert kit.now == clock.now
    assert [event.outcome for event in kit.events.finished(kit_job(log))] == ["completed"]


def kit_job(log: EventLog) -> str:
    [event] = {event.job_id for event in log.events if hasattr(event, "job_id")}
    return event


async def test_a_run_that_was_taken_for_dead_begins_anew() -> None:
    """G7: as a real worker's sweep would, had the run been silent for an hour."""
    async with Kit(app) as kit:
        job = await hold.enqueue("a")
        storage = clients_of(app).current().storage
        async with anyio.create_task_group() as group:
            group.start_soon(kit.run_until_idle)
            await shop_app.doors[-1].reached.wait()
            [incarnation] = await storage.beats("slow")
            error = ErrorInfo(type="WorkerDied", message="silent")
            assert await storage.reap("slow", incarnation, seen=0, error=error) == 0
            shop_app.doors[-1].opened.set()
        record = await job.status()
        assert (record.state, record.starts, record.stalls) == (JobState.COMPLETED, 2, 1)
        assert len(kit.events.of(QueueFenced)) == 1


def test_a_kit_and_a_clock_say_what_they_are() -> None:
    assert repr(Kit(app)).startswith("<Kit of <App at redis://localhost:1, tenant 'shop'")
    assert repr(ManualClock()).startswith("<ManualClock at 20")

"""A cancel of a running job reaches its handler at once, whatever kind it is of."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import psutil
import pytest

from headrace import App, CancelOutcome, Context, JobCancelled, JobState, Worker
from headrace.events import HandlerStuck
from headrace.testing import EventLog, running
from tests.apps import slots_app
from tests.support.jobs import ended, reached
from tests.support.redis_server import RedisServer
from tests.support.until import patience, until

LEASE_S = 60.0
"""So that a beat comes each 20 seconds only."""

SOON_S = 8.0
START_S = 30.0


async def test_a_coroutine_hears_of_it_long_before_the_next_beat(
    app: App[None], storage_url: str
) -> None:
    """G10, BC-80."""
    stopped = asyncio.Event()

    @app.task
    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with running(Worker(app, lease=LEASE_S)), App(storage_url, tenant=app.tenant) as other:
        job = await hang.enqueue()
        await reached(job, JobState.ACTIVE)
        assert await other.job(job.id).cancel() is CancelOutcome.REQUESTED
        async with asyncio.timeout(patience(SOON_S)):
            await stopped.wait()
        record = await ended(job, within=SOON_S)
        assert (record.state, record.reason) == (JobState.CANCELLED, None)
        with pytest.raises(JobCancelled):
            await job.result()


async def test_a_function_in_a_thread_is_given_up_and_its_job_says_so(
    app: App[None], storage_url: str
) -> None:
    """G10, BC-80."""
    begun = threading.Event()
    let_go = threading.Event()

    @app.task
    def hold() -> None:
        begun.set()
        let_go.wait(START_S)

    log = EventLog()
    worker = Worker(app, lease=LEASE_S, emit=log)
    async with running(worker), App(storage_url, tenant=app.tenant) as other:
        job = await hold.enqueue()
        await until(begun.is_set, within=10)  # one that had not begun would just be cancelled
        await other.job(job.id).cancel()
        record = await ended(job, within=SOON_S)
        assert (record.state, record.reason) == (JobState.CANCELLED, "could_not_stop")
        [stuck] = await log.wait(HandlerStuck)
        assert (stuck.kind, stuck.cause, stuck.job_id) == ("thread", "cancel", job.id)
        assert worker.stuck == 1
        let_go.set()
        await until(lambda: worker.stuck == 0, what="it has ended after all")


async def test_a_function_in_a_thread_can_ask_whether_it_should_stop(
    app: App[None], storage_url: str
) -> None:
    begun = threading.Event()
    heard = threading.Event()

    @app.task
    def look(context: Context) -> None:
        begun.set()
        give_up_at = time.monotonic() + START_S
        while not context.cancelled() and time.monotonic() < give_up_at:
            pass
        if context.cancelled():
            heard.set()

    worker = Worker(app, lease=LEASE_S, emit=EventLog())
    async with running(worker), App(storage_url, tenant=app.tenant) as other:
        job = await look.enqueue()
        await until(begun.is_set, within=10)
        await other.job(job.id).cancel()
        await until(heard.is_set, within=SOON_S)
        await ended(job, within=SOON_S)


async def test_a_process_is_killed(app: App[None], storage_url: str, tmp_path: Path) -> None:
    """G10, BC-80."""
    slots_app.adopt(app)
    here = tmp_path / "here"
    worker = Worker(app, lease=LEASE_S, process_slots=1, emit=EventLog())
    async with running(worker), App(storage_url, tenant=app.tenant) as other:
        job = await app.enqueue("wait_for", str(here), go=str(tmp_path / "never"))
        await until(here.exists, within=START_S)
        await other.job(job.id, queue="cpu").cancel()
        record = await ended(job, within=SOON_S)
        assert (record.state, record.reason) == (JobState.CANCELLED, None)
        assert not psutil.pid_exists(int(here.read_text()))
        again = await app.enqueue("mirror", slots_app.Point(1, 2))
        assert await again.result(timeout=patience(START_S)) == slots_app.Point(2, 1)


async def test_a_coroutine_that_swallows_it_is_given_up() -> None:
    """BC-80."""
    let_go = asyncio.Event()

    async with App("memory://stubborn") as app:

        @app.task
        async def stubborn() -> None:
            while not let_go.is_set():
                try:
                    await let_go.wait()
                except asyncio.CancelledError:
                    continue

        async with running(Worker(app, emit=EventLog())):
            job = await stubborn.enqueue()
            await reached(job, JobState.ACTIVE)
            await job.cancel()
            record = await ended(job, within=START_S)
            assert (record.state, record.reason) == (JobState.CANCELLED, "could_not_stop")
            let_go.set()


async def test_a_broken_subscription_delays_it_by_no_beat(
    app: App[None], redis_server: RedisServer, storage_url: str
) -> None:
    """Whoever subscribes again may have missed a message, and beats."""

    @app.task
    async def hang() -> None:
        await asyncio.Event().wait()

    async with running(Worker(app, lease=LEASE_S)), App(storage_url, tenant=app.tenant) as other:
        job = await hang.enqueue()
        await reached(job, JobState.ACTIVE)
        with redis_server.client() as client:
            await until(lambda: client.client_list(_type="pubsub"), what="it has subscribed")
            client.client_kill_filter(_type="pubsub")
        await other.job(job.id).cancel()
        assert (await ended(job, within=SOON_S)).state is JobState.CANCELLED


async def test_a_worker_that_can_not_be_told_hears_of_it_by_its_beat(
    redis_server: RedisServer, redis_url: str
) -> None:
    """G10: the message is only a hint."""
    with redis_server.client() as client:
        client.execute_command("ACL", "SETUSER", "deaf", "on", ">word", "~*", "&*", "+@all")
        client.execute_command("ACL", "SETUSER", "deaf", "-subscribe")
    try:
        url = redis_url.replace("redis://", "redis://deaf:word@")
        async with App(url, tenant="deaf") as app, App(redis_url, tenant="deaf") as other:

            @app.task
            async def hang() -> None:
                await asyncio.Event().wait()

            async with running(Worker(app, lease=1.5, emit=EventLog())):
                job = await hang.enqueue()
                await reached(job, JobState.ACTIVE)
                await other.job(job.id).cancel()
                assert (await ended(job, within=SOON_S)).state is JobState.CANCELLED
    finally:
        with redis_server.client() as client:
            client.execute_command("ACL", "DELUSER", "deaf")

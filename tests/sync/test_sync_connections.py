"""Connections of a sync app: opened late, lost in calls and waits, closed, refused."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from headrace import (
    App,
    EnqueueOutcome,
    ReplyLost,
    StorageError,
    StorageUnavailable,
    SyncApp,
    SyncTask,
    WaitTimeout,
    Worker,
)
from headrace.storage.redis.library import library
from headrace.testing import running
from tests.support.nowhere import unreachable_app
from tests.support.processes import ROOT
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.threads import working
from tests.support.until import patience, until

ENQUEUE = library().function("enqueue").encode()
WATCH = library().function("watch").encode()


def connections(server: RedisServer) -> int:
    """Count the open connections of headrace clients."""
    with server.client() as client:
        return sum(entry["name"].startswith("headrace") for entry in client.client_list())


def with_task(app: SyncApp[None]) -> SyncTask[[int], int]:
    @app.task(name="double")
    async def double(number: int) -> int:
        return 2 * number

    return double


@pytest.fixture
async def proxy(redis_server: RedisServer, redis_url: str) -> AsyncIterator[Proxy]:
    del redis_url  # the server is empty
    async with Proxy(redis_server.port) as proxy:
        yield proxy


def test_making_one_and_declaring_tasks_connects_nothing(
    redis_server: RedisServer, redis_url: str
) -> None:
    before = connections(redis_server)
    with SyncApp(redis_url) as app:
        task = with_task(app)
        task.job(1)
        app.job("some id")
        app.queue("emails")
        assert connections(redis_server) == before
        for number in range(10):
            task.enqueue(number)
        app.enqueue_many(task.job(n) for n in range(1_200))
        assert connections(redis_server) == before + 1
        with app:
            task.enqueue(1)
        assert connections(redis_server) == before + 1, "the outer block goes on"
    assert connections(redis_server) == before


async def test_a_closed_app_connects_again(redis_server: RedisServer, redis_url: str) -> None:
    app = SyncApp(redis_url)
    task = with_task(app)

    def use() -> None:
        with app:
            job = task.enqueue(1)
        assert job.status().args == {"number": 1}, "a handle outlives the block"
        with working(app):
            assert job.result() == 2
        app.close()
        app.close()

    await asyncio.to_thread(use)
    await until(lambda: connections(redis_server) == 0)


@pytest.mark.parametrize("lost_call", range(3))
async def test_a_lost_reply_is_asked_for_again(
    proxy: Proxy, redis_url: str, lost_call: int
) -> None:
    app = SyncApp(proxy.url)
    task = with_task(app)
    jobs = [task.job(n) for n in range(1_500)]
    ids = [job.id for job in jobs]

    def use() -> list[str]:
        with app:
            first = task.enqueue(1)
            lost = proxy.drop_next_reply(after=ids[500 * lost_call].encode())
            handles = app.enqueue_many(jobs)
            assert lost.is_set()
            assert {handle.outcome for handle in handles} == {EnqueueOutcome.QUEUED}
            assert [handle.id for handle in handles] == ids
            lost = proxy.drop_next_reply(after=ENQUEUE)
            last = task.enqueue(2)
            assert lost.is_set()
            assert last.outcome is EnqueueOutcome.QUEUED
            return [first.id, *ids, last.id]

    sent = await asyncio.to_thread(use)
    stored = SyncApp(redis_url)
    found = await asyncio.to_thread(
        lambda: [job.id for job in stored.queue("default").jobs("queued")]
    )
    assert sorted(found) == sorted(sent)
    stored.close()


async def test_what_was_stored_before_an_outage_is_told(proxy: Proxy) -> None:
    app = SyncApp(proxy.url, retry_for=0.05)
    task = with_task(app)

    def use() -> StorageError:
        with app, pytest.raises(StorageError) as caught:
            app.enqueue_many(jobs())
        return caught.value

    loop = asyncio.get_running_loop()

    def jobs() -> Any:
        for number in range(3_000):
            if number == 2_000:
                asyncio.run_coroutine_threadsafe(cut(), loop).result()
            yield task.job(number)

    async def cut() -> None:
        await proxy.refuse()
        proxy.reset_all()

    error = await asyncio.to_thread(use)
    assert isinstance(error, StorageUnavailable | ReplyLost)
    assert len(error.accepted) in (1_000, 1_500, 2_000)
    assert error.accepted[0].outcome is EnqueueOutcome.QUEUED


async def test_a_wait_outlives_its_connections(proxy: Proxy, redis_url: str) -> None:
    app = SyncApp(proxy.url)
    task = with_task(app)
    with app:
        job = await asyncio.to_thread(task.enqueue, 21)
        wait = asyncio.create_task(asyncio.to_thread(job.result, patience(20)))
        await until(lambda: proxy.connections >= 2, what="the wait is subscribed")
        proxy.reset_all()
        async with App(redis_url) as other, running(Worker(with_double(other))):
            assert await wait == 42


def with_double(app: App[None]) -> App[None]:
    @app.task(name="double")
    async def double(number: int) -> int:
        return 2 * number

    return app


async def test_an_end_of_which_no_word_comes_is_found(proxy: Proxy, redis_url: str) -> None:
    app = SyncApp(proxy.url)
    task = with_task(app)
    with app:
        job = await asyncio.to_thread(task.enqueue, 21)
        wait = asyncio.create_task(asyncio.to_thread(job.result, patience(20)))
        await until(lambda: proxy.connections >= 2, what="the wait is subscribed")
        # Its word is published on a connection that brings nothing any more.
        proxy.stall("client")
        async with App(redis_url) as other, running(Worker(with_double(other))):
            await until(ended(other, job.id))
        proxy.reset_all()
        proxy.flow()
        assert await wait == 42


def ended(app: App[None], job_id: str) -> Callable[[], Any]:
    async def look() -> bool:
        return (await app.job(job_id).status()).state.is_terminal

    return look


async def test_a_wait_for_a_storage_that_is_away_ends(proxy: Proxy) -> None:
    app = SyncApp(proxy.url)
    task = with_task(app)

    def use() -> None:
        job = task.enqueue(1)
        asyncio.run_coroutine_threadsafe(cut(), loop).result()
        with pytest.raises(WaitTimeout, match="how it stands can't be read"):
            job.result(timeout=0.1)

    async def cut() -> None:
        await proxy.refuse()
        proxy.reset_all()

    loop = asyncio.get_running_loop()
    with app:
        await asyncio.to_thread(use)


def test_a_storage_that_is_not_there_is_told() -> None:
    app = SyncApp(unreachable_app())
    for call in (app.connect, app.queues, lambda: app.enqueue("a", queue="b")):
        with pytest.raises(StorageUnavailable):
            call()
    with pytest.raises(StorageUnavailable):
        app.enqueue_many([app.task_ref("a", queue="b").job()])


# In a coroutine


IN_A_LOOP = """
import asyncio
from headrace import SyncApp
app = SyncApp({url!r})
async def main():
    app.queues()
    app.enqueue("a", queue="b")
asyncio.run(main())
"""


def run_python(program: str) -> str:
    """Run a program to its end, and return what it wrote to its standard error."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=patience(30),
        check=True,
    )
    return done.stderr


def test_a_program_is_told_once_where_it_blocks_its_loop(redis_url: str) -> None:
    program = IN_A_LOOP.format(url=redis_url)
    said = run_python(program)
    assert said.count("RuntimeWarning: a SyncApp was called from a coroutine") == 1
    assert "<string>:6: RuntimeWarning" in said
    assert "await app.task_ref(name).enqueue(...)" in said
    assert run_python("import builtins\nbuiltins.__IPYTHON__ = True\n" + program) == ""

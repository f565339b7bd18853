"""A6: an app has one connection for each event loop that uses it, and not one for each call."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import anyio

from headrace import App, Worker
from headrace.testing import running
from tests.support.redis_server import RedisServer
from tests.support.until import until


def connections(server: RedisServer) -> int:
    """Return how many connections are open beside the one that asks."""
    with server.client() as client:
        return len(client.client_list()) - 1


def in_thread(main: Callable[[], Coroutine[Any, Any, None]]) -> threading.Thread:
    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    return thread


async def joined(thread: threading.Thread) -> None:
    await anyio.to_thread.run_sync(thread.join)


async def test_two_loops_that_enqueue_in_turns_have_a_connection_each(
    redis_server: RedisServer, redis_url: str
) -> None:
    before = connections(redis_server)
    app = App(redis_url, tenant="two")
    loop = asyncio.get_running_loop()
    ours = asyncio.Semaphore(1)
    others: list[tuple[asyncio.AbstractEventLoop, asyncio.Semaphore]] = []
    has_begun = threading.Event()
    counts: list[int] = []

    async def take_turns() -> None:
        turn = asyncio.Semaphore(0)
        others.append((asyncio.get_running_loop(), turn))
        has_begun.set()
        for _ in range(20):
            await turn.acquire()
            await app.enqueue("task", queue="q")
            loop.call_soon_threadsafe(ours.release)
        await app.aclose()

    thread = in_thread(take_turns)
    await anyio.to_thread.run_sync(has_begun.wait)
    [(other, theirs)] = others
    for _ in range(20):
        await ours.acquire()
        await app.enqueue("task", queue="q")
        counts.append(connections(redis_server))
        other.call_soon_threadsafe(theirs.release)
    await joined(thread)
    assert max(counts) <= before + 2
    assert (await app.queue("q").stats()).queued == 40
    await app.aclose()
    await until(lambda: connections(redis_server) <= before, within=10)


async def test_a_worker_in_another_thread_whose_handlers_enqueue_shares_nothing_with_us(
    redis_server: RedisServer, app: App[None]
) -> None:
    before = connections(redis_server)

    @app.task(queue="first")
    async def first(number: int) -> None:
        await second.enqueue(number)

    @app.task(queue="second")
    async def second(number: int) -> int:
        return number

    worker = Worker(app, concurrency=5)
    is_over = threading.Event()

    async def work() -> None:
        async with running(worker):
            await anyio.to_thread.run_sync(is_over.wait)

    thread = in_thread(work)
    try:
        for number in range(20):
            await first.enqueue(number)
        await until(lambda: second_done(app), within=15, what="every handler's job has run")
        # Claims, waits for two queues, messages, beats, and what each loop enqueues.
        assert connections(redis_server) <= before + 10
    finally:
        is_over.set()
        await joined(thread)
    await app.aclose()
    await until(lambda: connections(redis_server) <= before, within=10)


async def second_done(app: App[None]) -> bool:
    return (await app.queue("second").stats()).last_minute.completed == 20


async def test_a_loop_that_ends_without_closing_leaves_no_connection(
    redis_server: RedisServer, redis_url: str
) -> None:
    before = connections(redis_server)
    app = App(redis_url, tenant="ends")

    async def once() -> None:
        await app.enqueue("task", queue="q")

    for _ in range(5):
        await joined(in_thread(once))
    await until(lambda: connections(redis_server) <= before, within=10)


async def test_blocks_in_two_loops_end_each_for_itself(
    redis_server: RedisServer, redis_url: str
) -> None:
    before = connections(redis_server)
    async with App(redis_url, tenant="blocks") as app:
        await app.connect()

        async def inner() -> None:
            async with app:
                await app.connect()
                assert connections(redis_server) == before + 2

        await joined(in_thread(inner))
        await until(lambda: connections(redis_server) == before + 1, within=10)
        await app.connect()
        assert connections(redis_server) == before + 1
    await until(lambda: connections(redis_server) <= before, within=10)

"""One lazy connection for all, and nothing left of it: no task, socket, warning or shared state."""

from __future__ import annotations

import asyncio
import gc
import sys
import textwrap
from pathlib import Path

import anyio
import psutil
import pytest

from headrace import App, JobState, ReplyLost, StorageUnavailable, Task, Worker
from headrace.testing import running
from tests.support.redis_server import RedisServer
from tests.support.until import patience, until


def connections(server: RedisServer) -> int:
    """Count the open connections of headrace clients."""
    with server.client() as client:
        return sum(entry["name"].startswith("headrace") for entry in client.client_list())


def add_task(app: App[None]) -> Task[[int], int]:
    @app.task(name="double")
    async def double(number: int) -> int:
        return number * 2

    return double


async def test_making_an_app_and_declaring_tasks_connects_nothing(
    redis_server: RedisServer, redis_url: str
) -> None:
    before = connections(redis_server)
    async with App(redis_url) as app:
        task = add_task(app)
        task.job(1)
        app.job("some id")
        app.queue("emails")
        assert connections(redis_server) == before


async def test_a_hundred_first_calls_at_once_open_one_connection(
    redis_server: RedisServer, redis_url: str
) -> None:
    async with App(redis_url) as app:
        task = add_task(app)
        handles = await asyncio.gather(*(task.enqueue(number) for number in range(100)))
        assert len({handle.id for handle in handles}) == 100
        assert connections(redis_server) == 1
        assert (await app.queue("default").stats()).queued == 100


async def test_first_calls_of_every_kind_share_the_connection(
    redis_server: RedisServer, redis_url: str
) -> None:
    async with App(redis_url) as app:
        task = add_task(app)
        async with anyio.create_task_group() as group:
            group.start_soon(app.connect)
            group.start_soon(task.enqueue, 1)
            group.start_soon(app.queue("default").stats)
            group.start_soon(app.job("no such job").cancel)
            group.start_soon(app.enqueue_many, [task.job(2)])
        assert connections(redis_server) == 1


async def test_closing_leaves_no_task_and_no_connection(
    redis_server: RedisServer, redis_url: str
) -> None:
    gc.collect()  # what other tests have left
    tasks = asyncio.all_tasks()
    files = psutil.Process().num_fds()
    async with App(redis_url) as app:
        task = add_task(app)
        async with running(Worker(app)):
            assert await task.enqueue_and_wait(4) == 8
            handle = await task.enqueue(1)
            await handle.result()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await (await task.options(delay=60).enqueue(1)).result()
    assert asyncio.all_tasks() == tasks
    await until(lambda: connections(redis_server) == 0, what="the server has seen them close")
    gc.collect()
    assert psutil.Process().num_fds() == files


async def test_a_closed_app_can_be_used_again(redis_server: RedisServer, redis_url: str) -> None:
    app = App(redis_url)
    task = add_task(app)
    for number in range(3):
        async with app:
            await task.options(id=f"job {number}").enqueue(number)
    async with app:
        assert (await app.queue("default").stats()).queued == 3
    await app.aclose()
    await app.aclose()
    await until(lambda: connections(redis_server) == 0)


async def test_nested_blocks_close_with_the_last(redis_server: RedisServer, redis_url: str) -> None:
    app = App(redis_url)
    async with app:
        async with app:
            await app.connect()
        assert connections(redis_server) == 1
    await until(lambda: connections(redis_server) == 0)


async def test_a_worker_that_ends_does_not_close_the_app_of_others(app: App[None]) -> None:
    task = add_task(app)
    handle = await task.options(delay=0.3).enqueue(21)
    waiting = asyncio.create_task(handle.result(timeout=patience(10)))
    async with running(Worker(app)):
        pass
    async with running(Worker(app)):
        assert await waiting == 42


async def test_closing_sends_what_still_waits(redis_url: str) -> None:
    async with App(redis_url) as app:
        task = add_task(app)
        # Far more than the two calls that may be in flight.
        sending = [asyncio.create_task(task.enqueue(number)) for number in range(3_000)]
        await asyncio.sleep(0)
    assert len({(await sent).id for sent in sending}) == 3_000
    async with app:
        assert (await app.queue("default").stats()).queued == 3_000


async def test_closing_an_app_whose_server_is_away_ends_in_time() -> None:
    with RedisServer() as server:
        async with App(server.url, retry_for=0.3) as app:
            task = add_task(app)
            await task.enqueue(1)
            server.pause()
            sending = [asyncio.create_task(task.enqueue(number)) for number in range(1_500)]
            await asyncio.sleep(0)
        for sent in sending:
            with pytest.raises((ReplyLost, StorageUnavailable)):
                await sent
        server.resume()


async def test_a_wait_that_is_open_when_the_app_closes_says_so(redis_url: str) -> None:
    async with App(redis_url) as app:
        task = add_task(app)
        begun = asyncio.create_task((await task.enqueue(1)).result())
        await app.connect()
        about_to = asyncio.create_task((await task.enqueue(2)).result())
        await asyncio.sleep(0)
    for waiting in (begun, about_to):
        with pytest.raises(StorageUnavailable, match="closed"):
            await waiting


async def test_a_handle_outlives_the_client_that_made_it(
    redis_server: RedisServer, redis_url: str
) -> None:
    app = App(redis_url)
    task = add_task(app)
    async with app:
        handle = await task.enqueue(1)
    async with app:
        assert (await handle.status()).state is JobState.QUEUED
        async with running(Worker(app)):
            assert await handle.result() == 2
    await until(lambda: connections(redis_server) == 0)


def test_another_event_loop_gets_connections_of_its_own(
    redis_server: RedisServer, redis_url: str
) -> None:
    app = App(redis_url)
    task = add_task(app)

    async def enqueue(number: int) -> str:
        async with app:
            return (await task.enqueue(number)).id

    ids = {asyncio.run(enqueue(number)) for number in range(3)}
    assert len(ids) == 3

    async def count() -> int:
        async with app:
            return (await app.queue("default").stats()).queued

    assert asyncio.run(count()) == 3
    assert connections(redis_server) == 0


FORKING = textwrap.dedent(
    """
    import asyncio, gc, os, sys
    from headrace import App

    app = App(sys.argv[1], tenant="forks")

    @app.task(name="double")
    async def double(number: int) -> int:
        return number * 2

    async def in_child() -> None:
        async with app:
            for number in range(50):
                await double.enqueue(number)
        gc.collect()

    async def main() -> None:
        async with app:
            await double.enqueue(1)
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    await_in_new_loop()
                    code = 0
                finally:
                    os._exit(code)
            # The child must not touch what the parent is waiting for.
            ids = {(await double.enqueue(number)).id for number in range(50)}
            _, status = await asyncio.to_thread(os.waitpid, child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
            ids |= {(await double.enqueue(number)).id for number in range(50)}
            assert len(ids) == 100
            assert (await app.queue("default").stats()).queued == 151
        print("fine")

    def await_in_new_loop() -> None:
        asyncio.events._set_running_loop(None)
        asyncio.run(in_child())

    asyncio.run(main())
    """
)


@pytest.mark.parametrize("kind", ["redis", "file"])
async def test_an_app_works_on_both_sides_of_a_fork(
    redis_url: str, tmp_path: Path, kind: str
) -> None:
    program = tmp_path / "forking.py"
    program.write_text(FORKING)
    url = redis_url if kind == "redis" else f"file://{tmp_path}/data"
    # Newer Pythons warn of any fork beside a thread.
    warnings = ["-W", "error", "-W", "ignore:This process:DeprecationWarning"]
    async with await anyio.open_process([sys.executable, *warnings, str(program), url]) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        out = b"".join([chunk async for chunk in process.stdout])
        err = b"".join([chunk async for chunk in process.stderr])
        await process.wait()
    assert (process.returncode, out, err) == (0, b"fine\n", b"")


async def test_a_connection_that_was_killed_is_opened_again(
    redis_server: RedisServer, app: App[None]
) -> None:
    task = add_task(app)
    await task.options(id="a").enqueue(1)
    with redis_server.client() as client:
        client.client_kill_filter(_type="normal", skipme=True)
    await task.options(id="b").enqueue(1)
    assert (await app.job("b").status()).state is JobState.QUEUED

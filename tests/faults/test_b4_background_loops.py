"""B4: what works in the background never dies unseen, whatever error it meets."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from headrace import App, HeadraceError, StorageError, Worker
from headrace.errors import StorageFault
from headrace.events import LoopFailed, WorkerEvent
from headrace.guard import Guard
from headrace.storage.sqlite.engine.location import place_of
from headrace.storage.sqlite.engine.step import Effects
from headrace.storage.sqlite.engine.wakeup_socket import WakeupSocket
from headrace.storage.sqlite.engine.writer import Writer
from headrace.testing import EventLog, running
from tests.support.answers import ODD, answer, answer_again
from tests.support.redis_server import RedisServer
from tests.support.until import patience, until


@pytest.fixture(scope="module")
def own_server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture
def server(own_server: RedisServer) -> RedisServer:
    with own_server.client() as client:
        client.flushall()
    answer_again(own_server)
    return own_server


def calls_of_functions(server: RedisServer) -> int:
    with server.client() as client:
        return int(client.info("commandstats")["cmdstat_fcall"]["calls"])


def beats(server: RedisServer) -> int:
    """Return how often the one worker has beaten."""
    with server.client() as client:
        [beat] = client.hvals("hr:{default:default}:beats")
    return int(beat.split()[0])


async def test_the_beat_thread_outlives_an_error_that_nobody_expects(server: RedisServer) -> None:
    log = EventLog()
    async with App(server.url) as app:
        is_over = asyncio.Event()

        @app.task
        async def work() -> int:
            await is_over.wait()
            return 5

        worker = Worker(app, lease=patience(0.6), sweep_interval=0.2, emit=log)
        async with running(worker):
            answer(server, "beat", ODD)
            [failed, *_] = await log.wait(LoopFailed)
            assert failed.loop == "beat"
            assert not worker.is_ready
            answer_again(server)
            await until(lambda: worker.is_ready, within=10)
            handle = await work.enqueue()
            # Three beats are a lease.
            beaten = beats(server)
            await until(lambda: beats(server) >= beaten + 7, within=10)
            is_over.set()
            assert await handle.result() == 5
            record = await handle.status()
            assert (record.starts, record.stalls) == (1, 0)


@pytest.mark.parametrize("verb", ["claim", "settle", "prune"])
async def test_a_loop_that_meets_one_starts_again_and_the_worker_is_not_ready_meanwhile(
    server: RedisServer, verb: str
) -> None:
    log = EventLog()
    async with App(server.url) as app:

        @app.task
        async def work(number: int) -> int:
            return number

        async with running(Worker(app, lease=0.9, sweep_interval=0.2, emit=log)) as worker:
            assert await work.enqueue_and_wait(1) == 1
            answer(server, verb, ODD)
            await work.enqueue(2)
            await log.wait(LoopFailed)
            assert not worker.is_ready
            answer_again(server)
            await until(lambda: worker.is_ready, within=10)
            async with asyncio.timeout(patience(10)):
                assert await work.enqueue_and_wait(3) == 3
            # Nor does it turn without an end.
            calls, beaten = calls_of_functions(server), beats(server)
            await until(lambda: beats(server) >= beaten + 4, within=10)
            assert calls_of_functions(server) - calls < 100


async def test_a_wait_whose_job_can_not_be_read_ends_with_that_error(server: RedisServer) -> None:
    async with App(server.url) as app:
        handle = await app.enqueue("task", queue="q")
        waiting = asyncio.create_task(handle.result())
        with server.client() as client:
            await until(lambda: client.pubsub_channels("*:channel:*"), within=10)
            await until(lambda: client.hget(f"hr:{{default:q}}:job:{handle.id}", "channels"))
        answer(server, "watch", ODD)
        async with asyncio.timeout(patience(10)):
            with pytest.raises(StorageFault):
                await waiting


async def test_a_record_that_can_not_be_read_ends_nobody_elses_wait(server: RedisServer) -> None:
    async with App(server.url) as app:

        @app.task(name="task", queue="q")
        async def task() -> int:
            return 5

        bad, good = await task.enqueue(), await task.enqueue()
        waits = [asyncio.create_task(handle.result()) for handle in (bad, good)]
        with server.client() as client:
            key = f"hr:{{default:q}}:job:{good.id}"
            await until(lambda: client.hget(key, "channels"), within=10)
            client.set(f"hr:{{default:q}}:job:{bad.id}", "rubbish")
        async with asyncio.timeout(patience(10)):
            with pytest.raises(HeadraceError):
                await waits[0]
        assert not waits[1].done()
        with server.client() as client:
            client.delete(f"hr:{{default:q}}:job:{bad.id}")
        async with asyncio.timeout(patience(10)), running(Worker(app)):
            assert await waits[1] == 5


def test_sqlite_s_thread_outlives_who_can_not_be_told_of_a_commit(tmp_path: Path) -> None:
    told: list[Effects] = []

    def tell(effects: Effects) -> None:
        told.append(effects)
        if len(told) == 1:
            raise RuntimeError("nobody expects this")

    place = place_of(f"file://{tmp_path}/data")
    (tmp_path / "data").mkdir()
    seen: list[WorkerEvent] = []
    writer = Writer(
        place,
        lambda: sqlite3.connect(
            tmp_path / "data" / "db", isolation_level=None, check_same_thread=False
        ),
        process="p",
        committed=tell,
        ended=lambda db: db.close() if db is not None else None,
        guard=Guard(seen.append),
    )
    try:
        for number in range(3):
            won = writer.call(lambda step, n=number: n, lambda: 0, timeout_s=10)  # type: ignore[misc]
            assert won == number
        assert len(told) == 3
        assert [type(event) for event in seen] == [LoopFailed]
    finally:
        writer.stop()
        writer.join()


async def test_the_thread_that_hears_of_other_processes_outlives_an_error(tmp_path: Path) -> None:
    heard = 0

    def hear() -> None:
        nonlocal heard
        heard += 1
        if heard == 1:
            raise RuntimeError("nobody expects this")

    ours, theirs = (
        WakeupSocket(tmp_path / "wake", "ours"),
        WakeupSocket(tmp_path / "wake", "theirs"),
    )
    try:
        assert ours.listen(hear)
        for count in (1, 2, 3):
            theirs.nudge()
            await until(lambda count=count: heard == count, within=10)  # type: ignore[misc]
    finally:
        await anyio.to_thread.run_sync(ours.close)
        theirs.close()


async def test_a_guarded_loop_is_down_until_it_has_run_for_a_moment() -> None:
    seen: list[WorkerEvent] = []
    guard = Guard(seen.append)
    turns = 0

    async def loop() -> None:
        nonlocal turns
        turns += 1
        if turns < 3:
            assert guard.is_whole == (turns == 1)
            raise StorageError("away")
        await until(lambda: guard.is_whole, within=10)

    await guard.keep("loop", loop)
    assert turns == 3
    assert [event.error for event in seen if isinstance(event, LoopFailed)] == [
        "headrace.StorageError: away"
    ] * 2


async def test_neither_an_odd_error_nor_a_teller_that_fails_ends_a_guarded_loop() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise KeyError("no text")

    def tell(_event: WorkerEvent) -> None:
        raise RuntimeError("the log is full")

    turns = 0

    def loop() -> None:
        nonlocal turns
        turns += 1
        if turns == 1:
            raise Odd

    thread = threading.Thread(target=Guard(tell).keep_thread, args=("loop", loop))
    began_at = time.monotonic()
    thread.start()
    await anyio.to_thread.run_sync(thread.join, 10)
    assert turns == 2
    assert time.monotonic() - began_at < 10

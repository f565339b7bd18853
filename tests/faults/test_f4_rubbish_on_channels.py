"""F4: what is no end of a job is dropped from a channel, and whoever listens goes on listening."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from headrace import App, Worker
from headrace.events import LoopFailed
from headrace.testing import EventLog, running
from tests.support.redis_server import RedisServer
from tests.support.until import patience, until

RUBBISH = [
    b"",
    b"rubbish",
    b"\xff\xfe\n\xff\n\xff\n\xff\n\xff\n\xff",
    b"a\nb\ncompleted\n\nwhole\n1",
    b"hr:{t:q}\nid\nno-state\n\nwhole\n1",
    b"hr:{t:q}\nid\nfailed\nexhausted\nwhole\n{rubbish",
    b"hr:{t:q}\nid\nfailed\nexhausted\nwhole\n1 2",
]


async def test_a_client_hears_ends_at_once_after_rubbish(
    redis_server: RedisServer, app: App[None], capfd: pytest.CaptureFixture[str]
) -> None:
    @app.task
    async def work(number: int) -> int:
        return number

    async with running(Worker(app)):
        # By then it has subscribed, and looked for what it may have missed.
        assert await work.enqueue_and_wait(1) == 1
        with redis_server.client() as client:
            for channel in client.pubsub_channels(f"*{app.tenant}*:channel:*"):
                for message in RUBBISH:
                    client.publish(channel, message)
        for number in range(3):
            # The slow poll comes every three seconds.
            async with asyncio.timeout(2.5):
                assert await work.enqueue_and_wait(number) == number
    said = capfd.readouterr().err
    assert said.count("channel.message_dropped") <= 2  # once for a channel
    assert "rubbish" not in said


async def test_a_worker_goes_on_and_is_told_of_cancels_at_once_after_rubbish(
    redis_server: RedisServer, app: App[None]
) -> None:
    log = EventLog()
    is_cancelled = asyncio.Event()

    @app.task
    async def sleep() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            is_cancelled.set()
            raise

    # It beats every ten seconds by itself.
    async with running(Worker(app, lease=30, emit=log)) as worker:
        handle = await sleep.enqueue()
        await until(lambda: worker.active == 1, within=10)
        with redis_server.client() as client:
            channels = await until(
                lambda: client.pubsub_channels(f"*{app.tenant}*:channel:*"), within=10
            )
            for channel in channels:
                for message in RUBBISH:
                    assert client.publish(channel, message) == 1
        await handle.cancel()
        async with asyncio.timeout(patience(5)):
            await is_cancelled.wait()
        assert worker.is_ready
    assert log.of(LoopFailed) == []


async def test_rows_that_are_no_ends_are_dropped_and_what_comes_after_them_is_heard(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "data"
    async with App(f"file://{folder}") as app:

        @app.task
        async def work() -> int:
            return 5

        async with running(Worker(app)):
            assert await work.enqueue_and_wait() == 5
            [name] = [path.name for path in (folder / "wake").iterdir()]
            with closing(sqlite3.connect(folder / "headrace.sqlite3")) as database:
                # As another process would leave them, and nudge this one.
                database.executemany(
                    "INSERT INTO messages (process, channel, at_ms, body) VALUES (?, ?, ?, ?)",
                    [(name, f"{name}.x", 2**60, body) for body in RUBBISH],
                )
                database.commit()
                with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as sender:
                    sender.sendto(b"!", str(folder / "wake" / name))
                count = "SELECT count(*) FROM messages"
                await until(lambda: database.execute(count).fetchone() == (0,), within=10)
            assert await work.enqueue_and_wait() == 5

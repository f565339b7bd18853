"""F26: a storage that is away is told of after a second, and at the end by one clear error."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from headrace import App, StorageRefused, StorageUnavailable, WaitTimeout, Worker
from headrace.events import StorageRecovered, StorageWaiting
from headrace.testing import EventLog
from tests.support.nowhere import unreachable_app
from tests.support.redis_server import RedisServer
from tests.support.until import patience

MAIL = """
import asyncio
from headrace import App

app = App("redis://127.0.0.1:1", retry_for=1.5)

@app.task
async def hello() -> None: ...

async def main() -> None:
    async with app:
        await asyncio.gather(*(hello.enqueue() for _ in range(10)))

asyncio.run(main())
"""

HINT = "is it running there? Name another by url=, --url or HEADRACE_URL"


def test_f26_a_program_hears_of_it_while_it_waits_and_once_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "mail.py").write_text(MAIL)
    done = subprocess.run(
        [sys.executable, "mail.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert done.returncode == 1
    warned, _, traceback = done.stderr.partition("Traceback")
    assert warned.count("storage.waiting") == 1, "however many calls wait"
    assert HINT in warned
    assert "Traceback" not in traceback, "one, and none that is chained to it"
    last = traceback.strip().splitlines()[-1]
    assert re.fullmatch(r"headrace\.errors\.StorageUnavailable: Redis: .*127\.0\.0\.1:1.*", last)
    assert last.endswith(HINT)


async def test_f26_a_worker_that_starts_hears_of_it_and_of_its_end() -> None:
    with RedisServer() as server:
        server.stop()
        app: App[None] = App(server.url)

        @app.task
        async def hello() -> str:
            return "hello"

        log = EventLog()
        worker = Worker(app, emit=log)
        async with app, asyncio.TaskGroup() as group:
            group.create_task(worker.run())
            [waiting] = await log.wait(StorageWaiting, within=patience(15))
            assert HINT in waiting.error
            server.start()
            [recovered] = await log.wait(StorageRecovered, within=patience(15))
            assert recovered.after_ms >= waiting.waited_ms
            assert await hello.enqueue_and_wait() == "hello"
            worker.stop()


async def test_f26_a_look_says_it_at_once() -> None:
    app = unreachable_app()
    with pytest.raises(StorageUnavailable, match=re.escape(HINT)) as caught:
        await app.job("x").status()
    assert caught.value.__suppress_context__
    await app.aclose()


async def test_f26_a_wait_does_not_say_that_the_job_goes_on() -> None:
    app = unreachable_app()
    with pytest.raises(WaitTimeout, match=re.escape(HINT)) as caught:
        await app.job("x").result(timeout=0.1)
    assert "job 'x' was not seen to end within 0.1 s: how it stands can't be read" in str(
        caught.value
    )
    await app.aclose()


async def test_p12_a_database_that_is_not_there_is_refused(redis_server: RedisServer) -> None:
    app: App[None] = App(f"{redis_server.url}/99")
    with pytest.raises(StorageRefused, match="the server has no such database"):
        await app.connect()
    await app.aclose()

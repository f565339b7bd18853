"""Processes that sleep beside others that don't: who is awake is woken at once."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import psutil

from headrace.storage.sqlite.engine.location import FILE_NAME
from tests.apps.embedded_app import make_app
from tests.support.processes import WorkerProcess
from tests.support.until import until

MODULE = "tests.apps.embedded_app"
JOBS = 40
"""More than a socket holds that nobody reads from."""


def stops_idle(worker: WorkerProcess, directory: Path) -> bool:
    """Stop a worker; whether that caught it outside of a transaction, which all would wait for."""
    worker.stop()
    with closing(sqlite3.connect(directory / FILE_NAME, timeout=0)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            worker.cont()
            return False
    return psutil.Process(worker.pid).status() == psutil.STATUS_STOPPED


async def test_a_job_starts_at_once_while_another_worker_is_stopped(
    directory: Path, tmp_path: Path
) -> None:
    """Fault 53. A wake-up that went to the stopped one alone would come two seconds late."""
    url = f"file://{directory}"
    async with make_app(url) as app:
        run = app.tasks["pid"]

        def start(name: str) -> WorkerProcess:
            return WorkerProcess.module(MODULE, url, "worker", directory=tmp_path, name=name)

        async def has_both() -> bool:
            return len(await app.queue("shared").workers()) == 2

        with start("first") as first, start("second") as second:
            await until(has_both, within=20)
            await until(lambda: stops_idle(first, directory), within=10)
            late = []
            for _ in range(JOBS):
                begun = time.monotonic()
                assert await run.enqueue_and_wait() == second.pid
                late.append(time.monotonic() - begun)
            assert sorted(late)[JOBS // 2] < 1
            # Once awake it is a worker like any other, though it was taken for dead.
            first.cont()
            second.kill()
            assert await run.enqueue_and_wait() == first.pid

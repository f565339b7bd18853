"""SIGHUP, which a terminal sends when it is closed, stops a worker as SIGTERM does."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from headrace import JobState
from tests.apps.operate_app import QUEUE
from tests.cli.workers import APP, START_S, Site, log, logged, site_on
from tests.support.processes import WorkerProcess
from tests.support.until import patience, until


@pytest.fixture(params=["redis", "file"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    async with site_on(request, tmp_path, Site) as site:
        yield site


@pytest.mark.parametrize("words", [(), ("--processes", "2")], ids=["alone", "two"])
async def test_a_hangup_hands_jobs_back(site: Site, words: tuple[str, ...]) -> None:
    with site.start("--shutdown-timeout", "200ms", *words) as worker:
        job = await site.begin("hold")
        os.kill(worker.pid, signal.SIGHUP)
        assert await worker.wait(START_S) == 0
        record = await job.status()
        assert (record.state, record.failures, record.stalls) == (JobState.QUEUED, 0, 0)
        assert sum(line["put_back"] for line in logged(worker, "worker.stopped")) == 1


async def test_a_process_slot_leaves_a_hangup_to_its_worker(site: Site) -> None:
    with site.start("--process-slots", "1", app="tests.apps.fork_app") as worker:
        job = await site.begin("crunch")
        for process in psutil.Process(worker.pid).children():
            if any("spawn_main" in word for word in process.cmdline()):
                process.send_signal(signal.SIGHUP)
        site.release()
        assert await job.result(timeout=patience(START_S)) == "crunched"
        assert (await job.status()).starts == 1


@pytest.mark.parametrize("words", [(), ("--processes", "2")], ids=["alone", "two"])
async def test_a_hangup_is_ignored_under_nohup(site: Site, words: tuple[str, ...]) -> None:
    argv = ["nohup", sys.executable, "-m", "headrace", "worker", APP, "--log-format", "json"]
    worker = WorkerProcess(*argv, *words, directory=site.directory, env=site.environment)
    with worker:
        await log(worker, "worker.started")
        await until(lambda: site.app.queue(QUEUE).workers(), within=START_S)
        os.kill(worker.pid, signal.SIGHUP)
        job = await site.enqueue("double", number=2)
        assert await job.result(timeout=patience(START_S)) == 4
        assert logged(worker, "worker.stopping") == []
        worker.term()
        assert await worker.wait(START_S) == 0

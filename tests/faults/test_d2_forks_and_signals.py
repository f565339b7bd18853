"""A process that a handler forks obeys signals as if its worker had set up none."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from tests.cli.workers import START_S, Site, logged, site_on
from tests.support.until import patience, until

APP = "tests.apps.fork_app"
STOPPING = (signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(params=["redis"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    async with site_on(request, tmp_path, Site) as site:
        yield site


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("task", ["terminate", "terminate_in_loop"])
async def test_a_forked_process_ends_at_a_signal(site: Site, task: str, loop: str) -> None:
    with site.start("--process-slots", "0", "--loop", loop, app=APP) as worker:
        for number in STOPPING:
            job = await site.enqueue(task, number=number)
            assert await job.result(timeout=patience(START_S)) == -number
        assert logged(worker, "worker.stopping") == [], "the worker has heard nothing"
        worker.term()
        assert await worker.wait(START_S) == 0


async def test_so_does_one_that_is_forked_in_a_process_slot(site: Site) -> None:
    with site.start("--process-slots", "1", app=APP):
        job = await site.enqueue("fork_in_slot")
        assert await job.result(timeout=patience(START_S)) == -signal.SIGTERM


async def test_a_pool_of_processes_in_a_function_ends_with_its_block(site: Site) -> None:
    with site.start("--process-slots", "0", app=APP) as worker:
        job = await site.enqueue("pool", note=str(site.note))
        assert await job.result(timeout=patience(START_S)) == "gave up"
        pids = [int(word) for word in site.said().split()]
        assert len(pids) == 2
        assert [pid for pid in pids if psutil.pid_exists(pid)] == []
        worker.term()
        assert await worker.wait(START_S) == 0


async def test_a_process_that_a_handler_has_left_does_not_survive_the_worker(site: Site) -> None:
    with site.start("--process-slots", "0", app=APP) as worker:
        await (await site.enqueue("leave", note=str(site.note))).result(timeout=patience(START_S))
        (left,) = psutil.Process(worker.pid).children()
        assert left.pid == int(site.said())
        worker.term()
        assert await worker.wait(START_S) == 6
        await until(lambda: not left.is_running(), within=START_S, what="nothing is left")
        assert logged(worker, "worker.cut_off")[0]["processes"] == [left.pid]

"""A process that a handler forks inherits nothing by which it could harm its worker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from tests.cli.workers import START_S, Site, logged, site_on
from tests.support.until import patience

APP = "tests.apps.fork_app"


@pytest.fixture(params=["redis", "file"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    async with site_on(request, tmp_path, Site) as site:
        yield site


@pytest.mark.parametrize("fork", ["fork_in_thread", "fork_in_loop", "fork_bare"])
async def test_a_fork_leaves_the_process_slots_alone(site: Site, fork: str) -> None:
    with site.start("--process-slots", "1", app=APP) as worker:
        crunch = await site.begin("crunch")
        for _ in range(2):
            assert await (await site.enqueue(fork)).result(timeout=patience(START_S)) in (0, 7)
        site.release()
        assert await crunch.result(timeout=patience(START_S)) == "crunched"
        record = await crunch.status()
        assert (record.starts, record.stalls) == (1, 0)
        assert logged(worker, "process.ended") == []


async def test_a_fork_that_returns_from_a_function_ends_there(site: Site) -> None:
    with site.start("--process-slots", "0", app=APP) as worker:
        assert await (await site.enqueue("fork_bare")).result(timeout=patience(START_S)) == 0
        assert psutil.Process(worker.pid).children() == []
        worker.term()
        assert await worker.wait(START_S) == 0

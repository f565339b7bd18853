"""F38: a worker that is stopped says what another signal would do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cli.workers import Site, log, logged, site_on


@pytest.fixture(params=["file"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    async with site_on(request, tmp_path, Site) as site:
        yield site


async def test_f38_the_first_signal_says_what_the_second_does(site: Site) -> None:
    """F38."""
    with site.start() as worker:
        await site.begin("hold")
        worker.term()
        stopping = await log(worker, "worker.stopping")
        assert stopping["next_signal"] == "puts back what still runs"
        site.release()
        assert await worker.wait(15) == 0


async def test_f38_a_supervisor_says_it_for_its_workers(site: Site) -> None:
    """F38: once, and what the third does after the second."""
    with site.start("--processes", "2") as supervisor:
        await log(supervisor, "worker.started", count=2)
        await site.begin("hold")
        supervisor.term()
        first = await log(supervisor, "worker.signalled")
        assert first["next_signal"] == "puts back what still runs"
        await log(supervisor, "worker.stopping", count=2)
        assert not [s for s in logged(supervisor, "worker.stopping") if "next_signal" in s]
        supervisor.term()
        second = await log(supervisor, "worker.signalled", count=2)
        assert second["next_signal"] == "kills the processes"
        site.release()
        assert await supervisor.wait(15) == 0

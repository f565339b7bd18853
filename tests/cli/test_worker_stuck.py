"""A worker process ends, whatever its handlers do; G14."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headrace import JobState
from tests.cli.workers import Site, log, logged, site_on
from tests.support.until import until

GRACE = ("--shutdown-timeout", "200ms")
CUT_OFF = 6
LIMIT_S = 40.0
"""Handlers get five seconds to unwind, what else holds the process five more; machines are slow."""

SAD_APP = """
from contextlib import asynccontextmanager
from tests.apps.operate_app import app

@asynccontextmanager
async def lifespan():
    yield
    raise RuntimeError("the database is away")

app.lifespan = lifespan
"""


@pytest.fixture(params=["redis", "file"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    async with site_on(request, tmp_path, Site) as site:
        yield site


async def test_a_function_that_never_returns_is_cut_off(site: Site) -> None:
    with site.start(*GRACE) as worker:
        job = await site.begin("hold_in_thread")
        worker.term()
        assert await worker.wait(LIMIT_S) == CUT_OFF
        line = logged(worker, "worker.cut_off")[0]
        assert (line["stuck"], line["level"]) == (1, "error")
        assert "headrace-handler_0" in line["threads"]
        assert logged(worker, "worker.stopped")[0]["stuck"] == 1
        record = await job.status()
        # Free of charge (G9), and another worker can take it.
        assert (record.state, record.failures, record.stalls) == (JobState.QUEUED, 0, 0)


async def test_a_coroutine_that_swallows_its_cancellation_is_cut_off(site: Site) -> None:
    with site.start(*GRACE) as worker:
        job = await site.begin("stubborn")
        worker.term()
        assert await worker.wait(LIMIT_S) == CUT_OFF
        assert site.said() == "cancelled"
        assert logged(worker, "worker.cut_off")[0]["stuck"] == 1
        assert (await job.status()).state is JobState.QUEUED


async def test_so_is_one_that_was_not_waited_for(site: Site) -> None:
    with site.start(*GRACE) as worker:
        await site.begin("stubborn")
        worker.term()
        await until(lambda: site.said() == "cancelled", within=LIMIT_S, what="the grace is over")
        worker.term()
        assert await worker.wait(LIMIT_S) == CUT_OFF
        assert len(logged(worker, "worker.cut_off")) == 1


async def test_a_thread_that_a_handler_started_is_cut_off_and_named(site: Site) -> None:
    with site.start("--loop", "asyncio", *GRACE) as worker:
        await site.begin("leak")
        worker.term()
        assert await worker.wait(LIMIT_S) == CUT_OFF
        line = logged(worker, "worker.cut_off")[0]
        assert line["stuck"] == 0
        assert any("asyncio" in name for name in line["threads"])


async def test_a_function_that_was_given_up_long_before_is_cut_off_too(site: Site) -> None:
    with site.start(*GRACE) as worker:
        job = await site.begin("hold_in_thread")
        await job.cancel()
        stuck = await log(worker, "handler.stuck")
        assert (stuck["kind"], stuck["cause"]) == ("thread", "cancel")
        worker.term()
        assert await worker.wait(LIMIT_S) == CUT_OFF
        assert logged(worker, "worker.cut_off")[0]["stuck"] == 1


async def test_what_a_worker_failed_of_is_told_although_it_is_cut_off(site: Site) -> None:
    (site.directory / "sad_app.py").write_text(SAD_APP)
    path = os.pathsep.join([str(site.directory), os.environ.get("PYTHONPATH", "")])
    with site.start(*GRACE, app="sad_app", PYTHONPATH=path) as worker:
        await site.begin("hold_in_thread")
        worker.term()
        assert await worker.wait(LIMIT_S) == CUT_OFF
        assert "the database is away" in logged(worker, "worker.cut_off")[0]["error"]


async def test_a_worker_without_stuck_handlers_ends_with_0(site: Site) -> None:
    with site.start() as worker:
        await site.begin("hold_in_thread")
        worker.term()
        await log(worker, "worker.stopping")
        site.release()
        assert await worker.wait(LIMIT_S) == 0
        assert site.said() == "done"
        assert logged(worker, "worker.cut_off") == []

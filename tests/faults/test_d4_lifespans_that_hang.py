"""A lifespan that hangs, at its start or its end, does not hold its worker for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace import App, LifespanTimeout, Worker
from headrace.errors import InvalidOption
from headrace.events import LifespanOverdue, WorkerStopped
from headrace.testing import EventLog
from tests.cli.workers import START_S, Site, logged, site_on
from tests.support.processes import WorkerProcess
from tests.support.until import patience, until

APP = "tests.apps.lifespan_app"
CUT_OFF = 6


@pytest.fixture(params=["redis"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    async with site_on(request, tmp_path, Site) as site:
        yield site


def start(site: Site, hang: str, *words: str) -> WorkerProcess:
    return site.start(*words, app=APP, LIFESPAN=hang, LIFESPAN_NOTE=str(site.note))


async def hangs(site: Site) -> None:
    await until(site.said, within=START_S, what="the lifespan hangs")


async def test_the_first_signal_ends_a_start_that_hangs(site: Site) -> None:
    with start(site, "start-wait") as worker:
        await hangs(site)
        worker.term()
        assert await worker.wait(START_S) == 0
        assert logged(worker, "worker.stopped")
        assert logged(worker, "lifespan.overdue") == []


async def test_the_second_signal_ends_an_end_that_hangs(site: Site) -> None:
    with start(site, "end-wait", "--teardown-timeout", "1h") as worker:
        assert await (await site.enqueue("double", number=1)).result(timeout=patience(START_S)) == 2
        worker.term()
        await hangs(site)
        worker.term()
        assert await worker.wait(START_S) == CUT_OFF
        assert "was cancelled" in logged(worker, "lifespan.overdue")[0]["error"]


@pytest.mark.parametrize("phase", ["start", "end"])
async def test_both_ends_have_a_limit(site: Site, phase: str) -> None:
    words = ("--startup-timeout", "300ms", "--teardown-timeout", "300ms", "--burst")
    with start(site, f"{phase}-wait", *words) as worker:
        assert await worker.wait(START_S) == CUT_OFF
        (line,) = logged(worker, "lifespan.overdue")
        assert line["error"] == f"the lifespan's {phase} took longer than 0.3 s"
        assert (line["is_stuck"], line["level"]) == (False, "error")
        assert f"Error: the lifespan's {phase} took longer than 0.3 s" in worker.stderr


@pytest.mark.parametrize("how", ["swallow", "block"])
async def test_one_that_can_t_be_cancelled_is_cut_off(site: Site, how: str) -> None:
    with start(site, f"end-{how}", "--teardown-timeout", "100ms", "--max-jobs", "1") as worker:
        assert await (await site.enqueue("double", number=1)).result(timeout=patience(START_S)) == 2
        assert await worker.wait(START_S) == CUT_OFF
        assert logged(worker, "lifespan.overdue")[-1]["is_stuck"] is True
        assert "goes on" in logged(worker, "worker.cut_off")[0]["error"]


async def test_a_start_that_swallows_its_cancellation_is_cut_off_too(site: Site) -> None:
    with start(site, "start-swallow") as worker:
        await hangs(site)
        worker.term()
        assert await worker.wait(START_S) == CUT_OFF


async def test_a_worker_in_a_program_raises_and_has_closed_everything(app: App[Any]) -> None:
    log = EventLog()

    @asynccontextmanager
    async def hanging() -> AsyncIterator[None]:
        yield
        await asyncio.Event().wait()

    app.lifespan = hanging
    worker = Worker(app, ["work"], burst=True, teardown_timeout=0.05, emit=log)
    with pytest.raises(LifespanTimeout, match=r"end took longer than 0\.05 s"):
        await worker.run()
    assert [event.is_stuck for event in log.of(LifespanOverdue)] == [False]
    assert await app.queue("work").workers() == []


async def test_a_lifespan_s_own_timeout_is_its_own(app: App[Any]) -> None:
    @asynccontextmanager
    async def late() -> AsyncIterator[None]:
        if not begun:
            raise TimeoutError("the database is away")
        yield

    begun: list[int] = []
    app.lifespan = late
    with pytest.raises(TimeoutError, match="the database is away"):
        await Worker(app, ["work"]).run()


async def test_a_worker_that_was_stopped_before_does_not_begin_its_lifespan(
    app: App[Any],
) -> None:
    log = EventLog()
    begun: list[int] = []

    @asynccontextmanager
    async def noted() -> AsyncIterator[None]:
        begun.append(1)
        yield

    app.lifespan = noted
    worker = Worker(app, ["work"], emit=log)
    worker.stop()
    await worker.run()
    assert begun == []
    assert log.of(WorkerStopped)


@pytest.mark.parametrize("option", ["startup_timeout", "teardown_timeout"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), "5", 1e12])
def test_limits_are_checked(option: str, value: Any) -> None:
    with pytest.raises(InvalidOption, match=option):
        Worker(App("memory://"), ["work"], **{option: value})

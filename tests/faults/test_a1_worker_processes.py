"""A1: `headrace worker` outlives what its handlers raise, and no neighbour pays for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headrace import FailReason, JobState
from tests.apps.zoo import EXCEPTIONS
from tests.apps.zoo_app import QUEUE
from tests.cli.workers import START_S, Site, log, logged, site_on
from tests.support.jobs import ended
from tests.support.until import patience, until

ANIMALS = ["NoAttributes", "ExitNotes", "SyntaxOfBytes", "TextExits", "ClassRaises"]


@pytest.fixture
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    async with site_on(request, tmp_path, Site) as site:
        yield site


@pytest.mark.parametrize(("site", "processes"), [("redis", "2"), ("file", "1")], indirect=["site"])
async def test_a_worker_outlives_what_its_handlers_raise(site: Site, processes: str) -> None:
    begun, go = site.directory / "begun", site.directory / "go"
    options = ("--processes", processes, "-c", "3", "--process-slots", "1")
    with site.start(*options, app="tests.apps.zoo_app") as worker:
        neighbour = await site.app.enqueue(
            "wait_in_thread", queue=QUEUE, begun=str(begun), go=str(go)
        )
        await until(begun.exists, within=START_S, what="the neighbour runs")
        handles = [
            await site.app.enqueue(f"raise_in_{place}", queue=QUEUE, animal=animal)
            for animal in ANIMALS
            for place in ("loop", "thread", "process")
        ]
        for handle in handles:
            record = await ended(handle, within=30)
            assert (record.state, record.reason) == (JobState.FAILED, FailReason.EXHAUSTED)
            assert (record.failures, record.stalls, record.starts) == (1, 0, 1)
        go.touch()
        assert await neighbour.result(timeout=patience(10)) == "waited"
        record = await neighbour.status()
        assert (record.stalls, record.starts) == (0, 1)
        assert logged(worker, "worker.process_ended") == logged(worker, "process.ended") == []
        worker.term()
        await log(worker, "worker.stopped", count=int(processes))
        assert await worker.wait(30) == 0


@pytest.mark.parametrize(
    ("when", "animal", "code"), [("ZOO_LIFESPAN", "TextExits", 1), ("ZOO_IMPORT", "TextExits", 4)]
)
async def test_what_an_app_raises_at_the_start_is_told_in_one_line(
    tmp_path: Path, when: str, animal: str, code: int
) -> None:
    site = Site("memory://", tmp_path)
    with site.start(app="tests.apps.zoo_app", **{when: animal}) as worker:
        assert await worker.wait(START_S) == code
    last = worker.stderr.splitlines()[-1]
    assert last.startswith("Error: ")
    assert type(EXCEPTIONS[animal]()).__name__ in last
    assert "Traceback" not in worker.stderr

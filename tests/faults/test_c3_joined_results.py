"""C3: ``enqueue_and_wait`` that joins a job finds its result, whatever was asked for at first."""

from __future__ import annotations

import asyncio

import pytest

from headrace import App, Worker
from headrace.app import clients_of
from headrace.testing import running
from tests.support.until import patience, until

SIZE = 100_000


@pytest.mark.parametrize("options", [{"keep": 0}, {"result_ttl": 0}], ids=["keep", "result_ttl"])
async def test_a_second_wait_for_a_running_job_brings_its_large_result(
    app: App[None], options: dict[str, float]
) -> None:
    go_on = asyncio.Event()
    starts = 0

    @app.task
    async def work() -> str:
        nonlocal starts
        starts += 1
        await go_on.wait()
        return "." * SIZE

    call = work.options(id="x", **options)  # type: ignore[arg-type]  # the names are options
    first = await call.enqueue()
    async with running(Worker(app)), asyncio.TaskGroup() as group:
        await until(lambda: starts == 1, within=10)
        second = group.create_task(call.enqueue_and_wait())
        third = group.create_task(call.enqueue_and_wait())
        await asyncio.sleep(0)  # both wait for the channel
        await clients_of(app).current().waits.channel()
        assert (await call.enqueue()).outcome == "duplicate"  # and stand before this one
        go_on.set()
        async with asyncio.timeout(patience(10)):
            assert len(await second) == len(await third) == SIZE
    assert len(await first.result(timeout=patience(10))) == SIZE
    assert starts == 1

"""Workers that end by themselves: a burst, and limits of jobs, memory and time. No job is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headrace import JobState
from tests.apps.operate_app import QUEUE, double
from tests.cli.workers import Site, log, logged, site_on
from tests.support.processes import WorkerProcess
from tests.support.until import until

LIMIT_S = 60.0


@pytest.fixture(params=["redis", "file"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    async with site_on(request, tmp_path, Site) as site:
        yield site


async def ended(worker: WorkerProcess, *, cause: str) -> None:
    """See that a worker ends in order, and by itself."""
    assert await worker.wait(LIMIT_S) == 0
    assert cause in logged(worker, "worker.ending")[0]["cause"]
    assert logged(worker, "worker.stopped")[0]["stuck"] == 0
    assert logged(worker, "worker.cut_off") == []


async def test_a_burst_runs_what_is_there_and_leaves_what_is_due_later(site: Site) -> None:
    done = [await site.enqueue("double", number=number) for number in range(40)]
    done += [await site.enqueue("double_in_thread", number=number) for number in range(40)]
    [later] = await site.app.enqueue_many([double.options(delay=3600).job(1)])
    with site.start("--burst") as worker:
        await ended(worker, cause="nothing left")
    assert [await job.result(timeout=1) for job in done] == [2 * n for n in range(40)] * 2
    assert (await later.status()).state is JobState.SCHEDULED
    assert await site.app.queue(QUEUE).workers() == []


async def test_a_burst_goes_on_while_running_jobs_bring_more(site: Site) -> None:
    await site.enqueue("chain", left=15)
    with site.start("--burst") as worker:
        await ended(worker, cause="nothing left")
    assert len(await site.jobs("completed")) == 16
    assert await site.jobs("queued") == []


async def test_a_burst_of_an_empty_queue_ends_at_once(site: Site) -> None:
    with site.start(HEADRACE_BURST="1") as worker:
        await ended(worker, cause="nothing left")


async def test_a_burst_waits_for_what_runs(site: Site) -> None:
    for task in ("hold", "hold_in_thread"):
        with site.start("--burst", "--shutdown-timeout", "0s") as worker:
            job = await site.begin(task)
            # Hundreds of its looks whether there is anything to do fit into this job.
            await site.enqueue("nap", seconds=1)
            await until(lambda: site.jobs("completed"), within=20, what="the nap is over")
            assert logged(worker, "worker.ending") == []
            site.release()
            await ended(worker, cause="nothing left")
            assert await job.result(timeout=1) == "held"
        site.reset()
        await site.app.queue(QUEUE).purge("completed", all_jobs=True)


async def test_a_worker_ends_after_so_many_jobs_and_loses_none(site: Site) -> None:
    names = ["double", "double_in_thread"] * 40
    jobs = [await site.enqueue(name, number=number) for number, name in enumerate(names)]
    with site.start("--max-jobs", "10", "-c", "4") as worker:
        await ended(worker, cause="attempts")
    done = len(await site.jobs("completed"))
    assert 10 <= done < len(jobs)
    assert len(await site.jobs("queued")) == len(jobs) - done
    with site.start("--burst") as worker:
        await ended(worker, cause="nothing left")
    assert [await job.result(timeout=1) for job in jobs] == [2 * n for n in range(80)]
    # Whoever ended handed back what it had not begun, and nothing ran twice.
    assert {(await job.status()).starts for job in jobs} == {1}


async def test_a_worker_that_is_old_enough_lets_its_jobs_end(site: Site) -> None:
    with site.start("--max-lifetime", "2s") as worker:
        job = await site.begin("hold")
        await log(worker, "worker.stopping")
        site.release()
        await ended(worker, cause="has run for")
        assert await job.result(timeout=1) == "held"


async def test_a_worker_that_is_too_large_ends(site: Site) -> None:
    with site.start("--max-memory", "1MB") as worker:
        await ended(worker, cause="bytes of memory")
    with site.start("--max-memory", "64GiB", "--burst") as worker:
        await ended(worker, cause="nothing left")

"""Workers that are killed as their jobs fail: each dead letter has one fail job."""

from __future__ import annotations

from functools import partial

import pytest

from headrace import App, JobState
from tests.apps.crash_app import QUEUE, doomed
from tests.crash.crew import Crew
from tests.support.jobs import unended
from tests.support.until import until

JOBS_A_KILL = 60


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
async def test_a_worker_may_be_killed_between_any_two_steps(
    crew: Crew, app: App[None], kills: int
) -> None:
    """G8: both are one step of the storage, which a death comes before or after."""
    handles = await app.enqueue_many(doomed.job(0.02) for _ in range(JOBS_A_KILL))
    queue = app.queue(QUEUE)

    async def dead() -> int:
        return (await queue.stats()).dead

    async def has_more_than(n: int) -> bool:
        return await dead() > n

    worker = await crew.worker("w0").ready()
    for kill in range(kills):
        before = await dead()
        # Those that were there may all have failed by now.
        handles += await app.enqueue_many(doomed.job(0.02) for _ in range(JOBS_A_KILL))
        await until(partial(has_more_than, before), within=8)
        worker.kill()
        worker = await crew.worker(f"w{kill + 1}").ready()

    async def mourned() -> list[str]:
        jobs = [job async for job in queue.export(JobState.COMPLETED)]
        assert {job.task for job in jobs} <= {"mourn"}
        return sorted(job.result for job in jobs)

    async def have_all_ended() -> bool:
        stats, left = await queue.stats(), await unended(queue)
        return (stats.dead, left, len(await mourned())) == (len(handles), 0, stats.history)

    await until(have_all_ended, within=30)
    assert await mourned() == sorted(handle.id for handle in handles)

"""Workers that are killed while they lay struck jobs aside: none is lost, and none runs."""

from __future__ import annotations

from functools import partial

import pytest

from headrace import App
from tests.apps.crash_app import QUEUE, echo
from tests.crash.crew import Crew
from tests.support.ledger import check_ledger
from tests.support.until import until

JOBS = 300


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
async def test_killed_workers_lose_no_job_that_they_were_to_lay_aside(
    crew: Crew, app: App[None], kills: int
) -> None:
    queue = app.queue(QUEUE)
    strike = await queue.strike("echo", where={"value": 42})

    async def has_blocked(n: int) -> bool:
        return (await queue.stats()).blocked >= n

    async def has_only_blocked(n: int) -> bool:
        stats = await queue.stats()
        return (stats.blocked, stats.queued, stats.active) == (n, 0, 0)

    workers = [await crew.worker(f"w{n}").ready() for n in range(2)]
    ids: list[str] = []
    for kill in range(kills):
        jobs = await app.enqueue_many(echo.options(max_stalls=1_000).job(42) for _ in range(JOBS))
        ids += [job.id for job in jobs]
        await until(partial(has_blocked, JOBS * kill + 1), within=20)
        workers.pop(0).kill()
        workers.append(await crew.worker(f"w{kill + 2}").ready())
    await until(partial(has_only_blocked, len(ids)), within=60)
    assert crew.ledger.entries() == []
    assert await queue.lift(strike)
    await until(partial(has_only_blocked, 0), within=60)
    await check_ledger(app, crew.ledger, ids, queue=QUEUE, unseen_claims=None)

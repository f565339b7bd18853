"""G3: the jobs of a dead worker are claimable within its lease, a sweep interval and a second."""

from __future__ import annotations

import asyncio

from headrace import App, Worker
from headrace.testing import running
from tests.support.silent import claim_and_die
from tests.support.until import patience, until

LEASE = 1.0
SWEEP = 0.5
SLACK = 3.0  # for a machine that is busy with other tests


async def test_a_dead_worker_s_jobs_run_again_in_time_after_another_starts(
    app: App[None],
) -> None:
    @app.task
    async def work() -> int:
        return 5

    handle = await work.enqueue()
    assert len(await claim_and_die(app, lease=LEASE)) == 1
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with running(Worker(app, lease=LEASE, sweep_interval=SWEEP)):
        assert await handle.result(timeout=patience(15)) == 5
    assert loop.time() - began < LEASE + SWEEP + 1 + SLACK
    assert (await handle.status()).stalls == 1


async def test_a_dead_worker_s_jobs_run_again_in_time_while_another_runs(app: App[None]) -> None:
    @app.task
    async def work() -> int:
        return 5

    loop = asyncio.get_running_loop()
    go_on = asyncio.Event()

    @app.task
    async def hold() -> None:
        await go_on.wait()

    # The live worker has no slot while the dead one claims.
    async with running(Worker(app, lease=LEASE, sweep_interval=SWEEP, concurrency=1)) as worker:
        await hold.enqueue()
        await until(lambda: worker.active == 1)
        handle = await work.enqueue()
        assert len(await claim_and_die(app, lease=LEASE)) == 1
        began = loop.time()
        go_on.set()
        assert await handle.result(timeout=patience(15)) == 5
        assert loop.time() - began < LEASE + SWEEP + 1 + SLACK


async def test_the_longest_timeout_of_any_task_does_not_delay_it(app: App[None]) -> None:
    # BC-01.
    @app.task(timeout=3_600)
    async def long() -> None: ...

    @app.task(timeout=3)
    async def short() -> int:
        return 5

    handle = await short.enqueue()
    await claim_and_die(app, lease=0.5)
    async with running(Worker(app, lease=0.5, sweep_interval=0.1)):
        assert await handle.result(timeout=patience(10)) == 5

"""A rate holds whatever workers and operators do, and charges nobody for the wait."""

from __future__ import annotations

import pytest

from headrace import App, JobState, Limit, Task, Worker
from headrace.testing import running
from tests.support.rates import bursts, starts_ms
from tests.support.until import patience, until

QUEUE = "calls"
RATE, BURST, JOBS = 20, 2, 14


@pytest.fixture
def call(app: App[None]) -> Task[[int], int]:
    @app.task(name="call", queue=QUEUE, limits=[Limit("api", rate=f"{RATE}/s", burst=BURST)])
    async def call(number: int) -> int:
        return number

    return call


async def test_a_rate_holds_over_workers_pauses_and_restarts_and_charges_nobody(
    app: App[None], call: Task[[int], int]
) -> None:
    # BC-91: what a rate held up sat in active and counted as stalled, and its queue stopped.
    queue = app.queue(QUEUE)
    handles = await app.enqueue_many(call.job(n) for n in range(JOBS))
    workers = [Worker(app, [QUEUE], lease=1.0, sweep_interval=0.05) for _ in range(2)]
    async with running(workers[0]):
        async with running(workers[1]):
            await until(lambda: _history(app, 4), within=30)
            await queue.pause()
        await queue.resume()
        results = [await handle.result(timeout=patience(30)) for handle in handles]
    assert results == list(range(JOBS))
    starts = await starts_ms(app, QUEUE, {handle.id for handle in handles}, JOBS)
    assert bursts(app, starts, rate=RATE, burst=BURST) == []
    for handle in handles:
        status = await handle.status()
        assert (status.starts, status.failures, status.stalls) == (1, 0, 0)
    gate = await queue.gate("api")
    assert (gate.ready, gate.active, gate.blocked) == (0, 0, 0)


async def _history(app: App[None], count: int) -> bool:
    return (await app.queue(QUEUE).stats()).history >= count


async def test_what_a_rate_holds_up_holds_up_no_other(app: App[None]) -> None:
    # BC-91: other keys, other tasks and other queues are unaffected.
    @app.task(name="slow", queue=QUEUE, limits=[Limit("api", by="to", rate="1/h")])
    async def slow(to: str, number: int) -> int:
        return number

    @app.task(name="free", queue=QUEUE)
    async def free(number: int) -> int:
        return number

    held = [await slow.enqueue("a", n) for n in range(5)]
    others = [await slow.enqueue("b", 7), await free.enqueue(8)]
    others.append(await free.options(queue="other").enqueue(9))
    async with running(Worker(app, [QUEUE, "other"], concurrency=2)):
        assert [await job.result(timeout=patience(30)) for job in others] == [7, 8, 9]
        assert await held[0].result(timeout=patience(30)) == 0
    status = await held[1].status()
    assert (status.state, status.blocked_by) == (JobState.BLOCKED, "api")
    assert (status.starts, status.failures, status.stalls) == (0, 0, 0)
    # One that is told not to hold up any more lets all of them go.
    await app.queue(QUEUE).set_limit("api", concurrency=10)
    async with running(Worker(app, [QUEUE])):
        assert [await job.result(timeout=patience(30)) for job in held] == list(range(5))


async def test_a_long_low_job_leaves_no_place_for_a_better_one_and_gives_it_first(
    app: App[None],
) -> None:
    # BC-88: who waits for a place goes by priority, not by when it came.
    order: list[str] = []

    @app.task(name="send", queue=QUEUE, limits=[Limit("one", concurrency=1)])
    async def send(name: str) -> None:
        order.append(name)

    await send.options(priority=0).enqueue("first")
    for name, priority in (("low", 0), ("high", 9), ("middle", 5), ("low too", 0), ("high too", 9)):
        await send.options(priority=priority).enqueue(name)
    async with running(Worker(app, [QUEUE])):
        await until(lambda: len(order) == 6, within=30)
    assert order == ["first", "high", "high too", "middle", "low", "low too"]

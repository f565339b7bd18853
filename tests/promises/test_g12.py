"""G12: a coroutine is cancelled at its limit, and its retry starts after it has really ended."""

from __future__ import annotations

import asyncio
from functools import partial

from headrace import App, Context, FailReason, JobState, Retry, Worker
from headrace.app import clients_of
from headrace.events import AttemptStarted, WorkerEvent
from headrace.testing import running
from tests.support.jobs import ended
from tests.support.until import patience, until

FAST = Retry(min=0.001, max=0.01)


async def test_an_attempt_is_cancelled_at_its_limit_and_retried(app: App[None]) -> None:
    loop = asyncio.get_running_loop()
    began: list[float] = []
    took: list[float] = []

    @app.task(timeout=0.2, max_attempts=2, retry=FAST)
    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            took.append(loop.time() - began[-1])

    def emit(event: WorkerEvent) -> None:
        # Before the limit begins to count, which it may do long before the handler is there.
        if isinstance(event, AttemptStarted):
            began.append(loop.time())

    async with running(Worker(app, emit=emit)):
        record = await ended(await hang.enqueue())
    assert (record.reason, record.failures) == (FailReason.EXHAUSTED, 2)
    assert {error.type for error in record.errors} == {"TimeoutError"}
    assert len(took) == 2
    assert all(0.199 <= seconds < patience(1.5) for seconds in took)


async def test_a_limit_of_the_call_wins_over_the_task_s(app: App[None]) -> None:
    @app.task(timeout=3_600, max_attempts=1)
    async def hang() -> None:
        await asyncio.Event().wait()

    async with running(Worker(app)):
        record = await ended(await hang.options(timeout=0.05).enqueue())
    assert record.errors[0].message == "the attempt took longer than its 0.05 s"


async def test_an_attempt_that_ignores_its_limit_never_runs_beside_its_retry(
    app: App[None],
) -> None:
    # BC-20.
    may_end = asyncio.Event()
    active = most = 0

    @app.task(timeout=0.05, retry=FAST, max_attempts=3)
    async def stubborn(context: Context[None]) -> None:
        nonlocal active, most
        active += 1
        most = max(most, active)
        try:
            if context.start == 1:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    await may_end.wait()
                    raise
        finally:
            active -= 1

    async with running(Worker(app, lease=0.5, sweep_interval=0.05)):
        handle = await stubborn.enqueue()
        beats = 3
        for _ in range(beats):
            await until(partial(_has_beaten, app, await _beat(app)))
        record = await handle.status()
        assert (record.state, record.starts) == (JobState.ACTIVE, 1)
        may_end.set()
        await handle.result()
    assert most == 1


async def _beat(app: App[None]) -> list[int]:
    beats = await clients_of(app).current().storage.beats("default")
    return [beat.count for beat in beats.values()]


async def _has_beaten(app: App[None], before: list[int]) -> bool:
    return await _beat(app) != before


async def test_other_attempts_are_not_touched_by_one_that_times_out(app: App[None]) -> None:
    go_on = asyncio.Event()

    @app.task(max_attempts=1)
    async def work() -> int:
        await go_on.wait()
        return 5

    async with running(Worker(app)):
        patient = await work.enqueue()
        hasty = await work.options(timeout=0.05).enqueue()
        assert (await ended(hasty)).state is JobState.FAILED
        go_on.set()
        assert await patient.result() == 5

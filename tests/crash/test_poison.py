"""Handlers that kill their worker, under a supervisor that starts it again."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from headrace import App, FailReason, JobFailed, JobState
from tests.apps.crash_app import QUEUE, slow
from tests.crash.crew import CrashWorker, Crew
from tests.support.ledger import check_ledger
from tests.support.until import patience, until


@asynccontextmanager
async def supervised(crew: Crew, count: int) -> AsyncIterator[Counter[str]]:
    """Keep ``count`` workers alive; yields how often each was started."""
    starts: Counter[str] = Counter()
    workers: dict[str, CrashWorker] = {}

    def start(name: str) -> None:
        starts[name] += 1
        workers[name] = crew.worker(name)

    def look_after_them() -> bool:
        for name, worker in workers.items():
            if worker.returncode is not None:
                start(name)
        return False

    for number in range(count):
        start(f"pod-{number}")
    supervisor = asyncio.create_task(until(look_after_them, within=60))
    try:
        yield starts
    finally:
        supervisor.cancel()
        with suppress(asyncio.CancelledError):
            await supervisor


async def test_a_poison_pill_ends_after_its_stalls(crew: Crew, app: App[None]) -> None:
    """BC-14, BC-15, fault 44: exactly ``max_stalls`` starts, and then it is a dead letter."""
    async with supervised(crew, 3) as starts:
        pill = await app.tasks["poison"].options(max_stalls=3).enqueue()
        with pytest.raises(JobFailed) as failure:
            await pill.result(timeout=patience(14))
        assert failure.value.reason == FailReason.STALLED
        record = await pill.status()
        assert (record.starts, record.stalls, record.failures) == (3, 3, 0)
        assert len(crew.ledger.starts(pill.id)) == 3
        await until(lambda: sum(starts.values()) == 6)
    assert [error.type for error in record.errors] == ["WorkerDied"] * 3


async def test_a_poison_pill_takes_no_neighbour_along(crew: Crew, app: App[None]) -> None:
    """BC-14: jobs claimed together with it are charged no attempt, and do not fail with it."""
    pill = await app.enqueue("poison")
    neighbours = await app.enqueue_many(slow.job(0.3) for _ in range(8))
    async with supervised(crew, 2):
        with pytest.raises(JobFailed):
            await pill.result(timeout=patience(14))
        ids = [handle.id for handle in neighbours]
        # What was claimed with the pill died before its first step.
        every = [*ids, pill.id]
        records = await check_ledger(app, crew.ledger, every, queue=QUEUE, unseen_claims=None)
    assert {records[i].state for i in ids} == {JobState.COMPLETED}
    assert {records[i].failures for i in ids} == {0}
    assert records[pill.id].stalls == 3


async def test_jobs_on_their_last_chance_run_one_at_a_time_and_hold_nobody_up(
    crew: Crew, app: App[None]
) -> None:
    """The neighbours of two deaths wait for each other, and not the jobs behind them."""
    fragile = app.tasks["hold"].options(max_stalls=2)
    held = [await fragile.enqueue("gate") for _ in range(3)]
    victim = await crew.worker("victim").ready()
    for job in held:
        await crew.ledger.started(job.id)
    victim.kill()
    await crew.worker("heir").ready()
    await until(lambda: len(crew.ledger.starts()) == 4, within=8)
    assert await app.tasks["echo"].enqueue_and_wait(1) == 1
    stats = await app.queue(QUEUE).stats()
    assert (stats.active, stats.queued) == (1, 2)
    since = time.monotonic()
    crew.open("gate")
    for job in held:
        assert await job.result(timeout=patience(8)) == "heir"
    # Each end wakes a worker for the next: nobody waits for a poll.
    assert time.monotonic() - since < patience(2)

"""Workers that are killed while they hold places: no limit is passed, and no place is lost."""

from __future__ import annotations

import signal
import time
from collections import Counter
from functools import partial

import pytest
import redis

from headrace import App, JobState
from headrace.storage.sqlite.storage import SqliteStorage
from tests.apps.crash_app import KEYS, QUEUE, limited
from tests.crash.crew import Crew
from tests.support import leaks, sqlite_check
from tests.support.jobs import unended
from tests.support.until import until

CREW = 2
JOBS_A_KILL = 40
STATES = (JobState.QUEUED, JobState.ACTIVE, JobState.BLOCKED)

pytestmark = pytest.mark.timeout(900)


async def left(app: App[None]) -> int:
    """Return how many jobs have not ended."""
    return await unended(app.queue(QUEUE))


async def has_less_than(app: App[None], n: int) -> bool:
    return await left(app) < n


async def are_active(app: App[None]) -> bool:
    return (await app.queue(QUEUE).stats()).active > 0


Counts = dict[str, tuple[int, int, int]]
"""How many jobs of each key are ready, active and blocked."""


async def jobs_by_key(app: App[None]) -> Counts:
    """Return what the jobs themselves say."""
    found: Counter[tuple[str, JobState]] = Counter()
    for state in STATES:
        async for row in app.queue(QUEUE).jobs(state):
            status = await app.job(row.id, queue=QUEUE).status()
            found[status.limits[limited.name + ":key"], state] += 1
    keys = [f"key-{n}" for n in range(KEYS)]
    ready, active, blocked = STATES
    return {key: (found[key, ready], found[key, active], found[key, blocked]) for key in keys}


async def gates_by_key(app: App[None]) -> Counts:
    """Return what their limit says."""
    counted = {}
    for key in (f"key-{n}" for n in range(KEYS)):
        gate = await app.queue(QUEUE).gate(limited.name + ":key", key)
        counted[key] = (gate.ready, gate.active, gate.blocked)
    return counted


async def agreed(app: App[None]) -> Counts | None:
    """Return what both say, None while the last word of a dead worker still comes between."""
    jobs, gates = await jobs_by_key(app), await gates_by_key(app)
    return jobs if jobs == gates else None


def problems(url: str) -> list[str]:
    """Return which rules the stored data break, of which the counts of gates are a part."""
    if url.startswith("file://"):
        writer = SqliteStorage(url).engine().writer
        return writer.call(sqlite_check.problems, lambda: time.time_ns() // 1_000_000, timeout_s=10)
    with redis.Redis.from_url(url) as client:
        return leaks.problems(client)


@pytest.mark.parametrize("kills", [2, pytest.param(100, marks=pytest.mark.slow)])
async def test_places_of_killed_workers_are_free_once_and_only_once(
    crew: Crew, app: App[None], kills: int
) -> None:
    """Handlers hold locks that end with their process: who finds too many of them says so.

    All workers are killed together, so that the counts of their limit can be held against the jobs
    while nobody changes either. Those that come next find all places taken by the dead.
    """
    held = 0
    for kill in range(kills // CREW):
        workers = [await crew.worker(f"w{CREW * kill + n}").ready() for n in range(CREW)]
        seconds = [1.0] + [0.02] * (JOBS_A_KILL - 1)
        await app.enqueue_many(limited.job(f"key-{n % KEYS}", s) for n, s in enumerate(seconds))
        await until(partial(has_less_than, app, await left(app)), within=30)
        await until(partial(are_active, app), within=30)
        for worker in workers:
            worker.kill()
        for worker in workers:
            assert await worker.wait(10) == -signal.SIGKILL
        jobs = await until(partial(agreed, app), within=10)
        assert jobs is not None
        held += sum(active for _, active, _ in jobs.values())
        assert problems(crew.url) == []
    assert held >= kills // CREW
    await crew.worker("last").ready()
    await until(partial(has_less_than, app, 1), within=60)
    assert not list(crew.directory.glob("over-*"))
    assert set((await gates_by_key(app)).values()) == {(0, 0, 0)}
    assert (await app.queue(QUEUE).stats()).dead == 0
    assert problems(crew.url) == []

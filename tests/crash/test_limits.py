"""Workers that are killed while they hold places: no limit is passed, and no place is lost."""

from __future__ import annotations

from functools import partial

import pytest

from headrace import App
from tests.apps.crash_app import KEYS, QUEUE, limited
from tests.crash.crew import Crew
from tests.support.until import until

JOBS_A_KILL = 60


@pytest.mark.parametrize("kills", [2, pytest.param(100, marks=pytest.mark.slow)])
async def test_places_of_killed_workers_are_free_once_and_only_once(
    crew: Crew, app: App[None], kills: int
) -> None:
    """Handlers hold locks that end with their process: who finds too many of them says so."""
    queue = app.queue(QUEUE)

    async def left() -> int:
        stats = await queue.stats()
        return stats.blocked + stats.queued + stats.active + stats.retrying

    async def has_less_than(n: int) -> bool:
        return await left() < n

    workers = [await crew.worker(f"w{n}").ready() for n in range(2)]
    for kill in range(kills):
        jobs = [limited.job(f"key-{n % KEYS}", 0.02) for n in range(JOBS_A_KILL)]
        await app.enqueue_many(jobs)
        await until(partial(has_less_than, await left()), within=20)
        workers.pop(0).kill()
        workers.append(await crew.worker(f"w{kill + 2}").ready())
    await until(partial(has_less_than, 1), within=60)
    assert not list(crew.directory.glob("over-*"))
    for n in range(KEYS):
        gate = await queue.gate(limited.name + ":key", f"key-{n}")
        assert (gate.ready, gate.active, gate.blocked) == (0, 0, 0)
    assert (await queue.stats()).dead == 0

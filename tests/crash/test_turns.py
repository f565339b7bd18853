"""Keys take turns over several workers, also where these are killed: no turn is lost."""

from __future__ import annotations

from functools import partial

import pytest

from headrace import App
from tests.apps.crash_app import QUEUE, fair
from tests.crash.crew import Crew
from tests.support.jobs import drained
from tests.support.until import until

KEYS = [f"key-{n}" for n in range(4)]
FEW = 10
SLOTS = 3
WORKERS = 3
JOBS_A_KILL = 60


@pytest.mark.parametrize("kills", [2, pytest.param(50, marks=pytest.mark.slow)])
async def test_no_key_waits_longer_for_workers_that_are_killed(
    crew: Crew, app: App[None], kills: int
) -> None:
    queue = app.queue(QUEUE)

    async def ended() -> int:
        return (await queue.stats()).history

    async def have_more_ended_than(n: int) -> bool:
        return await ended() > n

    workers = [await crew.worker(f"w{n}", concurrency=SLOTS).ready() for n in range(WORKERS)]
    await queue.pause()
    jobs = [(key, n) for key in KEYS for n in range(JOBS_A_KILL)] + [("few", n) for n in range(FEW)]
    await app.enqueue_many(fair.options(id=f"{key}:{n}").job(key, 0.02) for key, n in jobs)
    await queue.resume()
    before = 0
    for kill in range(kills):
        await until(partial(have_more_ended_than, before), within=20)
        workers.pop(0).kill()
        workers.append(await crew.worker(f"w{kill + WORKERS}", concurrency=SLOTS).ready())
        # These may all have ended before anybody looks.
        before = await ended()
        await app.enqueue_many(fair.job(KEYS[n % 4], 0.02) for n in range(JOBS_A_KILL))
    await drained(queue, within=60)
    started = [entry.job_id.partition(":")[0] for entry in crew.ledger.starts() if entry.epoch == 1]
    last = max(n for n, key in enumerate(started) if key == "few")
    # Workers write down what they have claimed as they begin it, in any order among them.
    assert last <= FEW * (len(KEYS) + 1) + WORKERS * SLOTS * len(KEYS)
    for key in (*KEYS, "few"):
        gate = await queue.gate("fair:default:5", key)
        assert (gate.ready, gate.active, gate.blocked) == (0, 0, 0)
    assert (await queue.stats()).dead == 0

"""Queues share a worker by their weights, and empty ones cost it next to nothing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import redis

from headrace import App
from tests.apps.crash_app import echo
from tests.crash.crew import CrashWorker, Crew
from tests.support.until import patience, until

SEVEN = {f"q{n}": 1 for n in range(7)}
SLOTS = 20
STARTED = 2 * SLOTS
"""How many starts are left out of account, since a queue may have all slots once; a round."""
QUIET_S = 4.0
CALLS_A_SECOND = 30
CPU_SHARE = 0.15


@pytest.fixture(params=["redis", "file"])
def crew(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Crew]:
    """Return a crew on an empty storage that processes can share."""
    is_file = request.param == "file"
    url = f"file://{tmp_path}/data" if is_file else request.getfixturevalue("redis_url")
    with Crew(url, tmp_path) as started:
        yield started


async def served(crew: Crew, app: App[None], weights: Mapping[str, int], jobs: int) -> list[str]:
    """Have a worker process run as many jobs of each queue; return the queues as jobs began."""
    queue_of = {f"{queue}:{n}": queue for n in range(jobs) for queue in weights}
    await app.enqueue_many(
        echo.options(id=job_id, queue=queue).job(1) for job_id, queue in queue_of.items()
    )
    await crew.worker("only", queues=weights, concurrency=SLOTS, lease=15, sweep_interval=5).ready()
    await until(lambda: len(crew.ledger.starts()) >= len(queue_of), within=30, what="all have run")
    return [queue_of[entry.job_id] for entry in crew.ledger.starts()]


@pytest.mark.parametrize(
    "weights", [SEVEN, {"high": 10, "middle": 3, "low": 1}], ids=["seven", "10:3:1"]
)
async def test_shares_are_as_weights_while_all_have_jobs(
    crew: Crew, weights: Mapping[str, int]
) -> None:
    # BC-89: equal weights became strict order.
    jobs = 2_800 // len(weights)
    async with crew.app() as app:
        began = await served(crew, app, weights, jobs)
    # Up to the last job of the queue that is empty first.
    end = min(len(began) - began[::-1].index(queue) for queue in weights)
    counts = Counter(began[STARTED:end])
    total = sum(weights.values())
    for queue, weight in weights.items():
        due = (end - STARTED) * weight / total
        turn = 2 * SLOTS * weight / total
        assert abs(counts[queue] - due) < 0.03 * due + turn, (queue, due, counts)


def asked(client: redis.Redis) -> int:
    """Return how many calls of functions and blocking calls the server has had."""
    stats = client.info("commandstats")
    names = ("cmdstat_fcall", "cmdstat_fcall_ro", "cmdstat_blmove", "cmdstat_eval")
    return sum(stats[name]["calls"] for name in names if name in stats)


async def quiet(app: App[None], worker: CrashWorker) -> tuple[float, float]:
    """Have nothing to do for a while; return how long that was, and the processor's time in it.

    A job that is due after it says when it is over, as an alarm does.
    """
    began_at, cpu_s = time.monotonic(), worker.cpu_s()
    alarm = await app.tasks["echo"].options(queue="q3", delay=QUIET_S).enqueue(1)
    assert await alarm.result(timeout=patience(QUIET_S + 10)) == 1
    return time.monotonic() - began_at, worker.cpu_s() - cpu_s


async def test_an_idle_worker_of_seven_queues_asks_for_and_uses_next_to_nothing(
    crew: Crew,
) -> None:
    # BC-89: weighted polling of empty queues burned a processor.
    async with crew.app() as app:
        worker = crew.worker("only", queues=SEVEN, lease=15, sweep_interval=5)
        await worker.ready()
        for queue in SEVEN:
            call = app.tasks["echo"].options(queue=queue, wait_timeout=patience(10))
            assert await call.enqueue_and_wait(1) == 1
        if crew.url.startswith("file://"):
            length_s, cpu_s = await quiet(app, worker)
        else:
            with redis.Redis.from_url(crew.url) as client:
                before = asked(client)
                length_s, cpu_s = await quiet(app, worker)
                calls = asked(client) - before
            assert calls < CALLS_A_SECOND * length_s
        assert cpu_s < CPU_SHARE * length_s

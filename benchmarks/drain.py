"""Drain: one worker process runs no-op handlers, with results and events, 100 at a time.

Plain jobs, jobs that each meet a limit of concurrency of a thousand keys, and jobs of which a
thousand keys take turns, or one has all of them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from benchmarks.harness import Figure, at_least, repeated, serving, working
from benchmarks.workload import QUEUE, Workload
from headrace import Job
from headrace.storage.redis import keys
from tests.support.redis_server import RedisServer

COUNT = 40_000
WARM_UP = 5_000
KEYS = 1_000
LOOK_EVERY_S = 0.05
"""Each look costs the server about as much as ten jobs."""


def plain(load: Workload, count: int) -> Iterable[Job]:
    """Return jobs that ask for nothing."""
    return (load.noop.job(x=n) for n in range(count))


def limited(load: Workload, count: int) -> Iterable[Job]:
    """Return jobs of which two of a key may run at once."""
    return (load.limited.job(x=n, key=n % KEYS) for n in range(count))


def fair(load: Workload, count: int) -> Iterable[Job]:
    """Return jobs whose keys take turns."""
    return (load.fair.job(x=n, key=n % KEYS) for n in range(count))


def fair_alone(load: Workload, count: int) -> Iterable[Job]:
    """Return jobs of the only key that has a turn."""
    return (load.fair.job(x=n, key=0) for n in range(count))


async def drain_s(server: RedisServer, load: Workload, jobs: Iterable[Job], count: int) -> float:
    """Fill the paused queue, resume it, and return how long until the last job was recorded."""
    queue = load.app.queue(QUEUE)
    await queue.pause()
    await load.app.enqueue_many(jobs)
    start = time.time()
    await queue.resume()
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        stats = await queue.stats()
        if not (stats.queued or stats.active or stats.blocked):
            break
    assert stats.history >= count
    # The last event has the time of the server's clock, which is this machine's.
    with server.client() as client:
        ((entry_id, _fields),) = client.xrevrange(
            keys.root(load.app.tenant, QUEUE) + ":events", count=1
        )
    return int(entry_id.split(b"-")[0]) / 1000 - start


async def run() -> list[float]:
    """Drain once of each sort, on new servers, by workers that have warmed up."""
    rates = []
    for jobs in (plain, limited, fair, fair_alone):
        with serving() as server:
            load = Workload(server.url)
            async with load.app, working(server, load):
                await drain_s(server, load, jobs(load, WARM_UP), WARM_UP)
                rates.append(COUNT / await drain_s(server, load, jobs(load, COUNT), COUNT))
    return rates


async def measure() -> list[Figure]:
    """Measure the rates."""
    rates, limited_rates, fair_rates, alone_rates = await repeated(run)
    return [
        Figure("drain, one worker process", "jobs/s", rates, at_least(33_000)),
        Figure("the same, limited by 1,000 keys", "jobs/s", limited_rates, at_least(15_000)),
        Figure("the same, 1,000 keys take turns", "jobs/s", fair_rates, at_least(15_000)),
        Figure("the same, one key has all turns", "jobs/s", alone_rates, at_least(5_000)),
    ]

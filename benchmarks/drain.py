"""Drain: one worker process runs no-op handlers, with results and events, 100 at a time."""

from __future__ import annotations

import asyncio
import time

from benchmarks.harness import Figure, at_least, repeated, serving, working
from benchmarks.workload import QUEUE, Workload
from headrace.storage.redis import keys
from tests.support.redis_server import RedisServer

COUNT = 40_000
WARM_UP = 5_000
LOOK_EVERY_S = 0.05
"""Each look costs the server about as much as ten jobs."""


async def drain_s(server: RedisServer, load: Workload, count: int) -> float:
    """Fill the paused queue, resume it, and return how long until the last job was recorded."""
    queue = load.app.queue(QUEUE)
    await queue.pause()
    await load.app.enqueue_many(load.noop.job(x=n) for n in range(count))
    start = time.time()
    await queue.resume()
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        stats = await queue.stats()
        if not stats.queued and not stats.active:
            break
    assert stats.history >= count
    # The last event has the time of the server's clock, which is this machine's.
    with server.client() as client:
        ((entry_id, _fields),) = client.xrevrange(
            keys.root(load.app.tenant, QUEUE) + ":events", count=1
        )
    return int(entry_id.split(b"-")[0]) / 1000 - start


async def run() -> list[float]:
    """Drain once, on a new server, by a worker that has warmed up."""
    with serving() as server:
        load = Workload(server.url)
        async with load.app, working(server, load):
            await drain_s(server, load, WARM_UP)
            return [COUNT / await drain_s(server, load, COUNT)]


async def measure() -> list[Figure]:
    """Measure the rate."""
    (rates,) = await repeated(run)
    return [Figure("drain, one worker process", "jobs/s", rates, at_least(33_000))]

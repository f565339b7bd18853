"""How fast workers drain queues: from `resume` to the last event, by the server's clock."""

from __future__ import annotations

import asyncio
import time

from benchmarks.growth.workload import GrowthLoad
from headrace.storage.redis import keys
from tests.support.redis_server import RedisServer
from tests.support.until import until

RATE = "drain, jobs/s"

LOOK_EVERY_S = 0.05
"""Each look costs the server about as much as ten jobs."""


async def drain(server: RedisServer, load: GrowthLoad, count: int) -> float:
    """Let the workers drain ``count`` jobs or a few more of paused queues; return jobs a second.

    The queues are paused again when it returns, and none of their jobs is active.
    """
    before = await waiting(load)
    assert before >= count
    start = time.time()
    await load.resume()
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        if before - await waiting(load) >= count:
            break
    await load.pause()

    async def has_ended() -> bool:
        return not any(stats.active for stats in await load.stats())

    await until(has_ended, within=60, what="the last jobs have ended")
    return (before - await waiting(load)) / (last_event_s(server, load) - start)


async def waiting(load: GrowthLoad) -> int:
    """Return how many jobs are ready in all queues, or held up by limits."""
    return sum(stats.queued + stats.blocked for stats in await load.stats())


def last_event_s(server: RedisServer, load: GrowthLoad) -> float:
    """Return when the last event was written, by the server's clock, which is this machine's."""
    with server.client() as client:
        ids = []
        for name in load.queues:
            ((entry_id, _fields),) = client.xrevrange(
                keys.root(load.app.tenant, name) + ":events", count=1
            )
            ids.append(int(entry_id.split(b"-")[0]))
    return max(ids) / 1000

"""The server's time for a job: what its three calls take of it, in batches of 100."""

from __future__ import annotations

from benchmarks.growth.backlog import CLAIM, ENQUEUE, SETTLE, TOGETHER, calls
from benchmarks.growth.caller import calling
from benchmarks.growth.workload import GrowthLoad
from benchmarks.harness import Figure, Goal, repeated, serving
from tests.support.redis_server import RedisServer


async def run(server: RedisServer) -> list[float]:
    """Return the microseconds per job of enqueue, claim and settle, and their sum."""
    load = GrowthLoad(server.url)
    with server.client() as client:
        client.flushall()
        async with load.app, calling(load) as caller:
            values = await calls(load, caller, client)
    return [values[name] for name in (ENQUEUE, CLAIM, SETTLE, TOGETHER)]


async def measure() -> list[Figure]:
    """Measure each verb by itself."""
    with serving() as server:
        enqueue, claim, settle, total = await repeated(lambda: run(server))
    return [
        Figure("Redis time a job", "µs", total, Goal(18)),
        Figure("Redis time a job: enqueue", "µs", enqueue),
        Figure("Redis time a job: claim", "µs", claim),
        Figure("Redis time a job: settle", "µs", settle),
    ]

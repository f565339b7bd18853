"""1,000 concurrent ``await enqueue``: what arrives together shares calls."""

from __future__ import annotations

import asyncio
import time

from benchmarks.harness import Figure, at_least, repeated, serving
from benchmarks.workload import Workload

CALLERS = 1_000
ROUNDS = 20


async def measure() -> list[Figure]:
    """Measure rounds of 1,000 callers, each round awaited before the next."""
    with serving() as server, server.client() as client:
        load = Workload(server.url)

        async def run() -> list[float]:
            client.flushall()
            start = time.perf_counter()
            for _ in range(ROUNDS):
                await asyncio.gather(*(load.noop.enqueue(x=n) for n in range(CALLERS)))
            return [CALLERS * ROUNDS / (time.perf_counter() - start)]

        async with load.app:
            (rates,) = await repeated(run)
    return [Figure("1,000 concurrent enqueues", "jobs/s", rates, at_least(60_000))]

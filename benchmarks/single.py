"""Enqueue one by one: each is awaited before the next."""

from __future__ import annotations

import time

from benchmarks.harness import Figure, Goal, at_least, percentile, repeated, serving
from benchmarks.workload import Workload

COUNT = 20_000


async def measure() -> list[Figure]:
    """Measure the rate and how long the slowest of a hundred take."""
    with serving() as server, server.client() as client:
        load = Workload(server.url)

        async def run() -> list[float]:
            client.flushall()
            times_s = []
            before = start = time.perf_counter()
            for n in range(COUNT):
                await load.noop.enqueue(x=n)
                now = time.perf_counter()
                times_s.append(now - before)
                before = now
            return [COUNT / (before - start), percentile(times_s, 99) * 1000]

        async with load.app:
            rates, p99s_ms = await repeated(run)
    return [
        Figure("enqueue one by one", "jobs/s", rates, at_least(10_000)),
        Figure("enqueue one by one, p99", "ms", p99s_ms, Goal(0.3)),
    ]

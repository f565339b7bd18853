"""A request and its response: ``enqueue_and_wait`` with an idle worker."""

from __future__ import annotations

import asyncio
import random
import time

from benchmarks.harness import Figure, Goal, percentile, repeated, serving, working
from benchmarks.start import COUNT, PAUSES_S
from benchmarks.workload import Workload


async def measure() -> list[Figure]:
    """Measure requests that come one by one."""
    with serving() as server:
        load = Workload(server.url)

        async def run() -> list[float]:
            times_ms = []
            for n in range(COUNT):
                await asyncio.sleep(random.uniform(*PAUSES_S))
                start = time.perf_counter()
                assert await load.noop.enqueue_and_wait(x=n) == n
                times_ms.append((time.perf_counter() - start) * 1000)
            return [percentile(times_ms, 50), percentile(times_ms, 99)]

        async with load.app, working(server, load):
            p50s, p99s = await repeated(run)
    return [
        Figure("enqueue_and_wait, p50", "ms", p50s, Goal(0.8)),
        Figure("enqueue_and_wait, p99", "ms", p99s, Goal(1.6)),
    ]

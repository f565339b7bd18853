"""An idle worker: how long from the call of ``enqueue`` until the handler runs."""

from __future__ import annotations

import asyncio
import random
import time

from benchmarks.harness import Figure, Goal, percentile, repeated, serving, working
from benchmarks.workload import Workload

COUNT = 1_000
PAUSES_S = 0.002, 0.005
"""Time between two jobs, in which the worker goes back to waiting."""


async def measure() -> list[Figure]:
    """Measure jobs that come one by one; their results are read when all have run."""
    with serving() as server:
        load = Workload(server.url)

        async def run() -> list[float]:
            handles = []
            for _ in range(COUNT):
                await asyncio.sleep(random.uniform(*PAUSES_S))
                handles.append(await load.since.enqueue(time.monotonic_ns()))
            times_ms = [await handle.result() / 1e6 for handle in handles]
            return [percentile(times_ms, 50), percentile(times_ms, 99)]

        async with load.app, working(server, load):
            p50s, p99s = await repeated(run)
    return [
        Figure("enqueue to handler, idle worker, p50", "ms", p50s, Goal(0.45)),
        Figure("enqueue to handler, idle worker, p99", "ms", p99s, Goal(0.9)),
    ]

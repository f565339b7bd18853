"""Delayed jobs: how late they start."""

from __future__ import annotations

import random
import time

from benchmarks.harness import Figure, Goal, percentile, repeated, serving, working
from benchmarks.workload import Workload

COUNT = 300
DELAYS_S = 0.05, 0.5


async def measure() -> list[Figure]:
    """Measure delays spread evenly; the call of ``enqueue`` counts as part of the lateness."""
    with serving() as server:
        load = Workload(server.url)

        async def run() -> list[float]:
            jobs = []
            for _ in range(COUNT):
                delay_ms = random.randint(*(round(d * 1000) for d in DELAYS_S))
                call = load.since.options(delay=delay_ms / 1000)
                jobs.append((delay_ms, await call.enqueue(time.monotonic_ns())))
            late_ms = [await handle.result() / 1e6 - delay_ms for delay_ms, handle in jobs]
            # The server counts in whole milliseconds, and its clock may have just turned.
            assert min(late_ms) > -1
            return [percentile(late_ms, 50), percentile(late_ms, 99)]

        async with load.app, working(server, load):
            p50s, p99s = await repeated(run)
    return [
        Figure("delayed job, due to handler, p50", "ms", p50s),
        Figure("delayed job, due to handler, p99", "ms", p99s, Goal(10)),
    ]

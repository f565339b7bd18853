"""An idle worker process: resident memory, and the processor time that it uses."""

from __future__ import annotations

import asyncio

import psutil

from benchmarks.harness import Figure, Goal, repeated, serving, working
from benchmarks.workload import Workload

SETTLE_S = 2.0
WINDOW_S = 6.0
"""More than two of its blocking calls and one sweep."""


async def run() -> list[float]:
    """Look at one worker that has run one job and then nothing."""
    with serving() as server:
        load = Workload(server.url)
        async with load.app, working(server, load) as worker:
            await asyncio.sleep(SETTLE_S)
            process = psutil.Process(worker.pid)
            before = process.cpu_times()
            await asyncio.sleep(WINDOW_S)
            after = process.cpu_times()
            used_s = after.user + after.system - before.user - before.system
            return [process.memory_info().rss / 1e6, round(used_s, 2) / WINDOW_S * 100]


async def measure() -> list[Figure]:
    """Measure new processes."""
    memory_mb, percents = await repeated(run, warm_ups=0, repeats=3)
    return [
        Figure("idle worker, resident", "MB", memory_mb, Goal(45)),
        Figure("idle worker, processor", "%", percents),
    ]

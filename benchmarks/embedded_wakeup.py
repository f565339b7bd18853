"""Idle workers that share a directory: how soon one of them starts a job, and what idling costs."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import psutil

from benchmarks.harness import Figure, Goal, percentile, repeated, worker_process
from benchmarks.workload import QUEUE, Workload
from tests.support.processes import WorkerProcess
from tests.support.until import until

WORKERS = 7
COUNT = 300
PAUSES_S = 0.01, 0.02
"""Time between two jobs, in which the workers go back to waiting."""
SETTLE_S = 2.0
WINDOW_S = 12.0
"""Six of its blocking calls, two or three sweeps and beats."""


@asynccontextmanager
async def crew(count: int) -> AsyncIterator[tuple[Workload, list[WorkerProcess]]]:
    """Workers on one directory that have all registered."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = f"file://{directory}/data"
        load = Workload(url)
        async with load.app:
            workers = [
                stack.enter_context(worker_process(url, directory, name=f"worker-{n}"))
                for n in range(count)
            ]

            async def all_registered() -> bool:
                return len(await load.app.queue(QUEUE).workers()) == count

            await until(all_registered, within=60, what="the workers have registered")
            await load.noop.enqueue_and_wait(x=0)
            yield load, workers


async def starts(load: Workload) -> list[float]:
    """Return p50 and p99 of the time until the handler runs, in milliseconds."""
    handles = []
    for _ in range(COUNT):
        await asyncio.sleep(random.uniform(*PAUSES_S))
        handles.append(await load.since.enqueue(time.monotonic_ns()))
    times_ms = [await handle.result() / 1e6 for handle in handles]
    return [percentile(times_ms, 50), percentile(times_ms, 99)]


async def idle() -> list[float]:
    """Return the processor time of one idle worker alone, in percent of a core."""
    async with crew(1) as (_, [worker]):
        await asyncio.sleep(SETTLE_S)
        process = psutil.Process(worker.pid)
        before = process.cpu_times()
        await asyncio.sleep(WINDOW_S)
        after = process.cpu_times()
        used_s = after.user + after.system - before.user - before.system
        return [round(used_s, 2) / WINDOW_S * 100]


async def measure() -> list[Figure]:
    """Measure a crew awake, the same with one of them stopped, and one worker that idles."""
    async with crew(WORKERS) as (load, workers):
        awake = await repeated(lambda: starts(load))
        workers[0].stop()
        stopped = await repeated(lambda: starts(load))
        workers[0].cont()
    (percents,) = await repeated(idle, warm_ups=0, repeats=3)
    what = "file://: enqueue to handler, 8 processes"
    return [
        Figure(f"{what}, p50", "ms", awake[0]),
        Figure(f"{what}, p99", "ms", awake[1], Goal(20)),
        Figure("the same, one worker stopped, p50", "ms", stopped[0]),
        Figure("the same, one worker stopped, p99", "ms", stopped[1], Goal(20)),
        Figure("file://: idle worker, processor", "%", percents, Goal(1)),
    ]

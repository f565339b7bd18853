"""Embedded storage: bulk enqueue, and a drain with results and events, 100 at a time.

In memory the worker runs in the producer's process; on a file it is a process of its own.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import anyio

from benchmarks.harness import Figure, at_least, repeated
from benchmarks.workload import QUEUE, SLOTS, Workload
from headrace import Worker
from tests.support.processes import WorkerProcess
from tests.support.until import until

COUNT = 20_000
WARM_UP = 2_000
LOOK_EVERY_S = 0.02
RUNS = iter(range(1_000_000))


async def fill_and_drain(load: Workload, count: int) -> tuple[float, float]:
    """Fill the paused queue and resume it; return how long each took."""
    queue = load.app.queue(QUEUE)
    await queue.pause()
    start = time.perf_counter()
    await load.app.enqueue_many(load.noop.job(x=n) for n in range(count))
    filled = time.perf_counter()
    await queue.resume()
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        stats = await queue.stats()
        if not stats.queued and not stats.active:
            break
    assert stats.history >= count
    return filled - start, time.perf_counter() - filled


async def rates(load: Workload) -> list[float]:
    """Return jobs a second: enqueued, drained, and both one after the other."""
    await load.noop.enqueue_and_wait(x=0)
    await fill_and_drain(load, WARM_UP)
    filling, draining = await fill_and_drain(load, COUNT)
    return [COUNT / filling, COUNT / draining, COUNT / (filling + draining)]


async def in_memory() -> list[float]:
    """Fill and drain in one process."""
    load = Workload(f"memory://bench-{next(RUNS)}")
    async with load.app, anyio.create_task_group() as group:
        worker = Worker(load.app, concurrency=SLOTS)
        group.start_soon(worker.run)
        await until(lambda: worker.is_ready, within=20)
        found = await rates(load)
        worker.stop()
    return found


async def on_file() -> list[float]:
    """Fill here, and drain in another process; every commit reaches the disk."""
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        url = f"file://{directory}/data"
        load = Workload(url)
        await stack.enter_async_context(load.app)
        stack.enter_context(
            WorkerProcess.module("benchmarks.workload", url, directory=Path(directory))
        )
        await until(load.app.queue(QUEUE).workers, within=20)
        return await rates(load)


async def measure() -> list[Figure]:
    """Measure both."""
    memory = await repeated(in_memory)
    file = await repeated(on_file)
    names = ("bulk enqueue", "drain", "enqueue + drain")
    return [
        *(
            Figure(f"memory://: {n}", "jobs/s", runs)
            for n, runs in zip(names[:2], memory, strict=False)
        ),
        Figure(f"memory://: {names[2]}", "jobs/s", memory[2], at_least(20_000)),
        *(
            Figure(f"file://: {n}", "jobs/s", runs)
            for n, runs in zip(names[:2], file, strict=False)
        ),
        Figure(f"file://: {names[2]}", "jobs/s", file[2], at_least(10_000)),
    ]

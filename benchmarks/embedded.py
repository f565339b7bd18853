"""Embedded storage: enqueueing one by one and in bulk, and a drain with results and events.

In memory the worker runs in the producer's process; on a file it is a process of its own.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import anyio

from benchmarks.harness import Figure, at_least, repeated, worker_process
from benchmarks.workload import QUEUE, SLOTS, Workload
from headrace import Worker
from tests.support.until import until

COUNT = 20_000
SINGLE = 2_000
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


async def single_rate(load: Workload) -> float:
    """Enqueue for a paused queue, each job awaited before the next; return jobs a second."""
    queue = load.app.queue(QUEUE)
    await queue.pause()
    start = time.perf_counter()
    for n in range(SINGLE):
        await load.noop.enqueue(x=n)
    taken_s = time.perf_counter() - start
    await queue.resume()
    return SINGLE / taken_s


@asynccontextmanager
async def on_file(sync: str) -> AsyncIterator[Workload]:
    """One worker process on a new directory; at ``sync=full`` every commit reaches the disk."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = f"file://{directory}/data?sync={sync}"
        load = Workload(url)
        async with load.app:
            stack.enter_context(worker_process(url, directory))
            await until(load.app.queue(QUEUE).workers, within=20)
            yield load


async def file_rates(sync: str) -> list[float]:
    """Return jobs a second: one by one, in bulk, drained, and the last two together."""
    async with on_file(sync) as load:
        return [await single_rate(load), *(await rates(load))]


async def measure() -> list[Figure]:
    """Measure both, the file with every commit on the disk."""
    bulk, drain, both = await repeated(in_memory)
    single, file_bulk, file_drain, file_both = await repeated(lambda: file_rates("full"))
    return [
        Figure("memory://: bulk enqueue", "jobs/s", bulk),
        Figure("memory://: drain", "jobs/s", drain),
        Figure("memory://: enqueue + drain", "jobs/s", both, at_least(20_000)),
        Figure("file://: enqueue one by one", "jobs/s", single),
        Figure("file://: bulk enqueue", "jobs/s", file_bulk),
        Figure("file://: drain", "jobs/s", file_drain),
        Figure("file://: enqueue + drain", "jobs/s", file_both, at_least(10_000)),
    ]

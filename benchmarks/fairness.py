"""Fairness: a customer with 100,000 jobs and one with 10; how long the ten wait.

They come last, to a queue that is paused until then, and one worker runs 100 at a time.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.harness import Figure, Goal, repeated, serving, working
from benchmarks.workload import QUEUE, SLOTS, Workload
from headrace import Task

MANY, FEW = 100_000, 10


async def wait_of_few(load: Workload, task: Task[Any, Any]) -> tuple[float, float]:
    """Return how many jobs of the other customer began before the last of the few, and the ms."""
    queue = load.app.queue(QUEUE)
    await queue.pause()
    await load.app.enqueue_many(task.job(0, key=0) for _ in range(MANY))
    sent_ns = time.monotonic_ns()
    few = await load.app.enqueue_many(task.job(sent_ns, key=1) for _ in range(FEW))
    await queue.resume()
    began = [await handle.result(timeout=120) for handle in few]
    return max(n for n, _ in began) - FEW + 1, max(ns for _, ns in began) / 1e6


async def run() -> list[float]:
    """Measure once in turns and once in the order in which they came, each on a new server."""
    figures: list[float] = []
    for is_fair in (True, False):
        with serving() as server:
            load = Workload(server.url)
            async with load.app, working(server, load):
                figures += await wait_of_few(load, load.begin if is_fair else load.begin_in_order)
    return figures


async def measure() -> list[Figure]:
    """Measure both."""
    before, ms, before_in_order, ms_in_order = await repeated(run, repeats=3)
    of = f"of {MANY:,} jobs before another customer's {FEW}"
    return [
        Figure(f"{of}, in turns", "jobs", before, Goal(FEW + SLOTS)),
        Figure("until the last of the ten begins, in turns", "ms", ms, Goal(100)),
        Figure(f"{of}, in order", "jobs", before_in_order),
        Figure("until the last of the ten begins, in order", "ms", ms_in_order),
    ]

"""Bulk enqueue: one producer gives many jobs to `enqueue_many`."""

from __future__ import annotations

import time
from collections.abc import Iterable

from benchmarks.harness import Figure, at_least, repeated, serving
from benchmarks.workload import Workload
from headrace import Job

COUNT = 40_000
TEXT = "x" * 189
"""Makes a payload of 200 bytes: too long for the record, so it has a key of its own."""


async def measure() -> list[Figure]:
    """Measure both sizes; making the jobs is part of it."""
    with serving() as server, server.client() as client:
        load = Workload(server.url)

        async def rate(jobs: Iterable[Job]) -> float:
            client.flushall()
            start = time.perf_counter()
            handles = await load.app.enqueue_many(jobs)
            seconds = time.perf_counter() - start
            assert len(handles) == COUNT
            return COUNT / seconds

        async def run() -> list[float]:
            return [
                await rate(load.noop.job(x=n) for n in range(COUNT)),
                await rate(load.small.job(text=TEXT) for _ in range(COUNT)),
            ]

        async with load.app:
            small, large = await repeated(run)
    return [
        Figure('bulk enqueue, {"x": 1}', "jobs/s", small, at_least(160_000)),
        Figure("bulk enqueue, 200 B", "jobs/s", large),
    ]

"""The worker processes that run the tasks of a load."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

from benchmarks.environments import Environment, ours
from benchmarks.growth.workload import GrowthLoad
from tests.support.processes import WorkerProcess
from tests.support.redis_server import RedisServer
from tests.support.until import until


@asynccontextmanager
async def working(
    server: RedisServer,
    load: GrowthLoad,
    *,
    processes: int = 1,
    slots: int = 100,
    environment: Environment | None = None,
) -> AsyncIterator[None]:
    """Worker processes on all queues of a load, once all have registered.

    They run in the environment that a user has, or in another one.
    """
    python = (environment or ours()).python
    with ExitStack() as stack:
        for number in range(processes):
            stack.enter_context(
                WorkerProcess.module(
                    "benchmarks.growth.workload",
                    server.url,
                    str(len(load.queues)),
                    str(slots),
                    directory=server.directory,
                    name=f"worker-{number}",
                    python=python,
                )
            )

        async def are_registered() -> bool:
            return all(stats.workers >= processes for stats in await load.stats())

        await until(are_registered, within=60, what="the workers have registered")
        yield

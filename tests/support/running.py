"""A worker inside a test, from the first line of a block to its last."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from headrace import Worker
from tests.support.until import until

START_SECONDS = 10.0


@asynccontextmanager
async def running(worker: Worker) -> AsyncIterator[Worker]:
    """Run a worker while the block runs: it consumes at its begin, and is stopped at its end.

    Use it in the test's body: a fixture's ``yield`` must not hold a task group. A worker that dies
    ends the block with its error.
    """
    async with anyio.create_task_group() as group:
        group.start_soon(worker.run)
        await until(lambda: worker.is_ready, within=START_SECONDS, what="the worker consumes")
        try:
            yield worker
        finally:
            worker.stop()

"""A real worker inside a test, from the first line of a block to its last."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from headrace.worker.worker import Worker

START_S = 30.0
LOOK_S = 0.005


@asynccontextmanager
async def running(worker: Worker) -> AsyncIterator[Worker]:
    """Run a worker while the block runs: it consumes at its begin, and has ended after its end.

    Use it in the test's body and not around a fixture's ``yield``, which must not hold a task
    group. A worker that dies ends the block with its error. The block's end calls `Worker.stop`: a
    block that has called it itself waits there for what it expects of that, since a second call
    ends the grace.

    Raises:
        AssertionError: the worker did not consume within ten seconds.
    """
    async with anyio.create_task_group() as group:
        group.start_soon(worker.run)
        await _until_ready(worker)
        try:
            yield worker
        finally:
            worker.stop()


async def _until_ready(worker: Worker) -> None:
    give_up_at = time.monotonic() + START_S
    while not worker.is_ready:
        if time.monotonic() > give_up_at:
            raise AssertionError(f"the worker {worker.name!r} did not consume within {START_S:g} s")
        await anyio.sleep(LOOK_S)

"""A worker inside a test, from the first line of a block to its last, and what it told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio

from headrace import Worker
from headrace.events import JobFinished, WorkerEvent
from tests.support.until import until

E = TypeVar("E", bound=WorkerEvent)

START_SECONDS = 10.0


@asynccontextmanager
async def running(worker: Worker) -> AsyncIterator[Worker]:
    """Run a worker while the block runs: it consumes at its begin, and has ended after its end.

    Use it in the test's body: a fixture's ``yield`` must not hold a task group. A worker that dies
    ends the block with its error. A block that calls `Worker.stop` itself waits for what it
    expects of that, since the end of the block would be the second call.
    """
    async with anyio.create_task_group() as group:
        group.start_soon(worker.run)
        await until(lambda: worker.is_ready, within=START_SECONDS, what="the worker consumes")
        try:
            yield worker
        finally:
            worker.stop()


class EventLog:
    """Pass it as ``emit=``: it keeps every worker event."""

    def __init__(self) -> None:
        self.events: list[WorkerEvent] = []

    def __call__(self, event: WorkerEvent) -> None:
        self.events.append(event)

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of one type so far, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    def finished(self, job_id: str) -> list[JobFinished]:
        """Return the recorded outcomes of one job so far, in order."""
        return [event for event in self.of(JobFinished) if event.job_id == job_id]

    async def wait(self, kind: type[E], count: int = 1, *, within: float = 10.0) -> list[E]:
        """Wait for the n-th event of a type; return all of that type."""
        await until(
            lambda: len(self.of(kind)) >= count, within=within, what=f"{count} {kind.__name__}"
        )
        return self.of(kind)

"""Waiting for what the storage says of a job."""

from __future__ import annotations

from typing import Any

from headrace import JobHandle, JobNotFound, JobState, JobStatus, Queue
from tests.support.until import until


async def unended(queue: Queue) -> int:
    """Return how many jobs of a queue have not ended, whatever they wait for."""
    now = await queue.stats()
    return now.queued + now.scheduled + now.retrying + now.active + now.blocked


async def drained(queue: Queue, *, within: float) -> None:
    """Wait until all jobs of a queue have ended."""

    async def is_drained() -> bool:
        return not await unended(queue)

    await until(is_drained, within=within, what=f"queue {queue.name!r} is drained")


async def record_of(handle: JobHandle[Any]) -> JobStatus | None:
    """Return what is kept of a job, None if nothing."""
    try:
        return await handle.status()
    except JobNotFound:
        return None


async def reached(handle: JobHandle[Any], *states: JobState, within: float = 10.0) -> JobStatus:
    """Wait until a job is in one of ``states`` and return its status."""

    async def look() -> JobStatus | None:
        record = await record_of(handle)
        return record if record is not None and record.state in states else None

    record = await until(look, within=within, what=f"{handle} is {states}")
    assert record is not None
    return record


async def ended(handle: JobHandle[Any], *, within: float = 10.0) -> JobStatus:
    """Wait until a job is in a terminal state and return its status."""
    terminal = [state for state in JobState if state.is_terminal]
    return await reached(handle, *terminal, within=within)


async def gone(handle: JobHandle[Any], *, within: float = 10.0) -> None:
    """Wait until nothing is kept of a job."""

    async def look() -> bool:
        return await record_of(handle) is None

    await until(look, within=within, what=f"{handle} is gone")

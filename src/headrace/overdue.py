"""What is told of a job that has not ended in time: how it stands, and who could run it."""

from __future__ import annotations

import asyncio

from headrace.description import told
from headrace.errors import WaitTimeout
from headrace.job import JobRecord, JobState
from headrace.storage.base import Inspector
from headrace.storage.incarnations import IncarnationInfo

LOOK_S = 1.0
"""How long the look may take, over the time that the caller was to wait."""


Seen = tuple[JobRecord | None, list[IncarnationInfo]]
"""What is kept of a job, and the workers of its queue."""


async def overdue(storage: Inspector, queue: str, job_id: str, *, timeout_ms: int) -> WaitTimeout:
    """Return the error for whoever has waited long enough; an error of the look is a part of it."""
    try:
        async with asyncio.timeout(LOOK_S):
            seen: Seen | Exception = await look(storage, queue, job_id)
    except Exception as error:  # whatever it was, the time is over
        seen = error
    return told_late(seen, queue, job_id, timeout_ms=timeout_ms)


async def look(storage: Inspector, queue: str, job_id: str) -> Seen:
    """Return how a job stands, and who serves its queue."""
    return await storage.get(queue, job_id), await storage.workers(queue)


def told_late(seen: Seen | Exception, queue: str, job_id: str, *, timeout_ms: int) -> WaitTimeout:
    """Return the error of a wait that was too short, from what was seen then or why nothing was."""
    is_served: bool | None = None
    if isinstance(seen, Exception):
        what, why = "was not seen to end", f"how it stands can't be read ({told(seen)})"
    else:
        record, workers = seen
        live = [worker for worker in workers if _is_live(worker)]
        is_served = any(record is None or record.task in worker.tasks for worker in live)
        what, why = "has not ended", _why(record, live, queue, is_served=is_served)
    return WaitTimeout(
        f"job {job_id!r} {what} within {timeout_ms / 1000:g} s: {why}",
        job_id=job_id,
        queue=queue,
        is_served=is_served,
    )


def _is_live(worker: IncarnationInfo) -> bool:
    return not worker.is_condemned and worker.silent_ms <= worker.lease_ms


def _why(
    record: JobRecord | None, live: list[IncarnationInfo], queue: str, *, is_served: bool
) -> str:
    if record is None:
        return "there is no record of it any more"
    how = f"it is {record.state}"
    if record.state is JobState.ACTIVE:
        return f"{how}, and goes on"
    if not live:
        return f"{how}, and no worker serves queue {queue!r}: start one"
    if not is_served:
        return (
            f"{how}, and no live worker of queue {queue!r} knows the task {record.task!r}: start "
            "one that does"
        )
    if record.state in (JobState.SCHEDULED, JobState.RETRYING):
        return f"{how}, and not due yet"
    return f"{how}, and goes on when a worker of queue {queue!r} has room for it"

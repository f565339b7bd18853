"""What ``queue list`` tells of jobs that wait because workers have put them back."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.job import JobRow, JobState
from headrace.storage.base import Inspector
from headrace.views.queues import QueueStats

LOOKED_AT = 100
"""How many of a queue's scheduled jobs are looked at: what was put back is due first."""


async def put_back_notes(storage: Inspector, queues: Iterable[QueueStats]) -> list[str]:
    """Return a line for each queue with such jobs, and why the first of them is one.

    Raises:
        StorageError: it could not be asked.
    """
    notes = []
    for stats in queues:
        if not stats.scheduled:
            continue
        page = await storage.list_jobs(stats.queue, JobState.SCHEDULED, limit=LOOKED_AT)
        found = [row for row in page.rows if row.error]
        if found:
            notes.append(_note(stats.queue, found))
    return notes


def _note(queue: str, jobs: list[JobRow]) -> str:
    first = jobs[0]
    count = "a job waits" if len(jobs) == 1 else f"{len(jobs):,} jobs wait"
    return f"Note: {queue}: {count}, put back by workers. Job {first.id}: {first.error_message}"

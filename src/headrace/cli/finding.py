"""Finds one job by what a person types: its id, or only the beginning of that."""

from __future__ import annotations

import click

from headrace.cli.options import queue_names, queue_of
from headrace.errors import JobNotFound
from headrace.job import JobRecord, JobState, check_text
from headrace.storage.base import Storage

# Those that one wants to see first, first.
LISTED = (
    JobState.ACTIVE,
    JobState.QUEUED,
    JobState.RETRYING,
    JobState.SCHEDULED,
    JobState.BLOCKED,
    JobState.FAILED,
    JobState.COMPLETED,
    JobState.CANCELLED,
)

LEAST_BEGINNING = 4
"""Characters of an id that may stand for it."""

MOST_LOOKS = 20_000
"""Jobs among which such an id is looked for: a second."""

SHOWN_MATCHES = 3


async def find(storage: Storage, job_id: str, queue: str | None, *, where: str) -> JobRecord:
    """Return a job by its id, looking in every queue where none is named.

    Args:
        storage: where it looks.
        job_id: the id.
        queue: its queue, None for any.
        where: the storage in words, as `Target.where` has it.

    Raises:
        JobNotFound: there is no record.
        UsageError: several queues have one with this id.
    """
    check_text(job_id, what="job id")
    names = await queue_names(storage) if queue is None else [queue_of(storage, queue).name]
    found = [record for name in names if (record := await storage.get(name, job_id))]
    if not found:
        raise no_such_job(job_id, queue, where=where)
    if len(found) > 1:
        queues = ", ".join(record.queue for record in found)
        raise click.UsageError(f"job {job_id!r} is in several queues ({queues}): say --queue")
    return found[0]


def no_such_job(job_id: str, queue: str | None, *, where: str) -> JobNotFound:
    """Return the error of an id that has no record in a queue, None for any."""
    place = "any queue" if queue is None else f"queue {queue!r}"
    return JobNotFound(
        f"there is no job {job_id!r} in {place} of {where}: "
        "it never was, was deleted, or its record is no longer kept",
        job_id=job_id,
        queue=queue or "",
    )


async def find_by_beginning(
    storage: Storage, said: str, queue: str | None, *, where: str
) -> JobRecord:
    """Return a job by its id or, where no job has that, by how one id alone begins.

    What changes jobs takes whole ids: another job may come that begins so too.

    Raises:
        JobNotFound: none begins so, among the first `MOST_LOOKS` that are looked at.
        UsageError: several do, or several queues have one with this id.
    """
    try:
        return await find(storage, said, queue, where=where)
    except JobNotFound:
        matches = [] if len(said) < LEAST_BEGINNING else await _beginning(storage, said, queue)
        if not matches:
            raise
    if len(matches) > 1:
        ids = ", ".join(job_id for _, job_id in matches[:SHOWN_MATCHES])
        more = ", …" if len(matches) > SHOWN_MATCHES else ""
        raise click.UsageError(f"several jobs begin with {said!r} ({ids}{more}): say more of it")
    [(its_queue, job_id)] = matches
    return await find(storage, job_id, its_queue, where=where)


async def _beginning(storage: Storage, said: str, queue: str | None) -> list[tuple[str, str]]:
    """Return queue and id of the jobs that begin so: one more than are shown at most."""
    matches: dict[tuple[str, str], None] = {}
    left = MOST_LOOKS
    for name in await queue_names(storage) if queue is None else [queue]:
        for state in LISTED:
            async for row in queue_of(storage, name).jobs(state, limit=left):
                left -= 1
                if row.id.startswith(said):
                    matches[name, row.id] = None
                if not left or len(matches) > SHOWN_MATCHES:
                    return list(matches)
    return list(matches)

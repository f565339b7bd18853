"""A reader of the chaos soak: it archives the ended jobs, and reads all events under one name.

Run as ``python -m tests.apps.chaos_reader``, with the environment of `tests.apps.chaos_app`. Where
it goes on in the archive it knows from its notes alone, and in the events from the storage. It ends
once everything has ended and was read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TypeVar

from headrace import ExportedJob, JobEvent, JobState
from tests.apps.chaos_app import app, name, notes
from tests.apps.chaos_jobs import is_drained, note_odd
from tests.chaos.plan import QUEUES

READER = "archive"
AT_ONCE = 200
PAUSE_S = 0.1
ENDED = tuple(state for state in JobState if state.is_terminal)

T = TypeVar("T")


async def read_once(cursors: dict[tuple[str, str], str]) -> None:
    """Archive and read what is new, from the cursors on, which are moved."""
    for queue in QUEUES:
        for state in ENDED:
            exported = app.queue(queue).export(state, after=cursors.get((queue, state), ""))
            async for jobs in grouped(exported):
                archive(jobs)
                cursors[queue, state] = jobs[-1].cursor
        async for events in grouped(app.queue(queue).events(reader=READER)):
            note_events(events)
            await app.queue(queue).acknowledge(READER, events[-1])


async def grouped(source: AsyncIterator[T]) -> AsyncIterator[list[T]]:
    """Yield what comes, so many at a time."""
    group: list[T] = []
    async for one in source:
        group.append(one)
        if len(group) == AT_ONCE:
            yield group
            group = []
    if group:
        yield group


def archive(jobs: list[ExportedJob]) -> None:
    """Note jobs and their cursors, all or none."""
    notes.archived(*((job.queue, job.state, job.id, job.cursor) for job in jobs))


def note_events(events: list[JobEvent]) -> None:
    """Note events, all or none; those whose acknowledgement is lost are noted again."""
    notes.read(*((event.queue, event.number, event.kind, event.job_id) for event in events))


async def read() -> None:
    """Read until everything has ended, then once more."""
    cursors = {(line.queue, line.state): line.cursor for line in notes.all_archived()}
    async with app:
        is_last = False
        while not is_last:
            is_last = is_drained()
            try:
                await read_once(cursors)
            except Exception as error:
                is_last = False
                note_odd(error, name)
            await asyncio.sleep(PAUSE_S)


if __name__ == "__main__":
    asyncio.run(read())

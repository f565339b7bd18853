"""The producer process of the crash tests: it enqueues, and notes what it wants and what it has.

Run as ``python -m tests.apps.crash_producer COUNT`` with the environment of `tests.apps.crash_app`.
"""

from __future__ import annotations

import asyncio
import os
import sys

from tests.apps.crash_app import directory, name, producer

BATCH = 10
PAUSE_S = 0.01


async def produce(count: int) -> None:
    """Enqueue ``count`` jobs, ten at a time, each by a call of its own."""
    notes = os.open(directory / f"sent-{name}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(word: str, job_id: str) -> None:
        os.write(notes, f"{word} {job_id}\n".encode())

    async with producer(os.environ["HEADRACE_REDIS_URL"]) as app:

        async def send(number: int) -> None:
            job_id = f"{name}-{number}"
            note("wanted", job_id)
            await app.tasks["echo"].options(id=job_id).enqueue(number)
            note("accepted", job_id)

        for first in range(0, count, BATCH):
            await asyncio.gather(*(send(number) for number in range(first, first + BATCH)))
            await asyncio.sleep(PAUSE_S)


if __name__ == "__main__":
    asyncio.run(produce(int(sys.argv[1])))

"""An app whose lifespan hangs at its start or its end, in the way that ``LIFESPAN`` says.

``LIFESPAN`` is ``<phase>-<how>``; it writes to the file ``LIFESPAN_NOTE`` what it is about to do.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from headrace import App
from tests.apps.operate_app import write

PHASE, _, HOW = os.environ.get("LIFESPAN", "").partition("-")
QUEUE = "work"


async def _hang(phase: str) -> None:
    if phase != PHASE:
        return
    write(os.environ["LIFESPAN_NOTE"], phase)
    if HOW == "block":
        time.sleep(3600)  # noqa: ASYNC251 (the point of it)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            if HOW != "swallow":
                raise


@asynccontextmanager
async def lifespan() -> AsyncIterator[None]:
    """Hang as said, and hold a task group from the start to the end."""
    async with anyio.create_task_group() as group:
        await _hang("start")
        yield
        await _hang("end")
        group.cancel_scope.cancel()


app = App(lifespan=lifespan)


@app.task(name="double", queue=QUEUE)
async def double(number: int) -> int:
    """Return twice the number."""
    return 2 * number

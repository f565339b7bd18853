"""The app of the tests of several worker processes: its handlers say in which process they run.

``CREW_NOTES`` is a directory. In there each process notes that it imported this module, and a test
says by files that the start of a worker fails (``broken``) or takes long (``shut``), and that a
module can't be imported by a worker though a check could (``torn``).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from headrace import App

NOTES = Path(os.environ.get("CREW_NOTES", os.devnull))
QUEUE = "work"


@asynccontextmanager
async def lifespan() -> AsyncIterator[None]:
    """Wait, or fail, as the test says."""
    while (NOTES / "shut").exists():  # noqa: ASYNC110 (a file gives no event)
        await asyncio.sleep(0.01)
    if (NOTES / "broken").exists():
        raise RuntimeError("the database is away")
    yield


app = App(lifespan=lifespan)

if NOTES.is_dir():
    (NOTES / f"imported-{os.getpid()}").touch()
    if (NOTES / "torn").exists() and "HEADRACE_WORKER_CHECK" not in os.environ:
        raise RuntimeError("it was replaced meanwhile")


def note(path: str) -> None:
    """Say in which process the handler runs."""
    draft = Path(f"{path}.draft")
    draft.write_text(str(os.getpid()))
    draft.rename(path)


def is_released(path: str) -> bool:
    """Return whether the test lets the handler end."""
    return Path(f"{path}.release").exists()


@app.task(name="where", queue=QUEUE)
async def where() -> int:
    """Return the process, soon."""
    await asyncio.sleep(0.01)
    return os.getpid()


@app.task(name="hold", queue=QUEUE)
async def hold(path: str) -> int:
    """Go on until it is released, and return the process."""
    note(path)
    while not is_released(path):  # noqa: ASYNC110 (as above)
        await asyncio.sleep(0.01)
    return os.getpid()


@app.task(name="block", queue=QUEUE)
async def block(path: str) -> int:
    """Do the same, and block the event loop meanwhile."""
    note(path)
    while not is_released(path):
        time.sleep(0.01)  # noqa: ASYNC251 (the point of it)
    return os.getpid()

"""The app of the tests that operate a worker process: handlers that end, go on, or block it.

A handler that takes a note writes there how far it is. One that holds does so until the test
releases it, by a file beside the note.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from headrace import App

app = App()
QUEUE = "work"


def write(note: str, text: str) -> None:
    """Tell the test how far a handler is."""
    Path(note).write_text(text)


def is_released(note: str) -> bool:
    """Return whether the test lets the handler end."""
    return Path(f"{note}.release").exists()


@app.task(name="double", queue=QUEUE)
async def double(number: int) -> int:
    """Return twice the number, soon."""
    await asyncio.sleep(0.005)
    return 2 * number


@app.task(name="double_in_thread", queue=QUEUE)
def double_in_thread(number: int) -> int:
    """Do the same in a thread."""
    time.sleep(0.005)
    return 2 * number


@app.task(name="chain", queue=QUEUE)
async def chain(left: int) -> int:
    """Enqueue the next of a chain, at the very end, until none is left."""
    await asyncio.sleep(0.02)
    if left:
        await chain.options(id=f"chain-{left - 1}").enqueue(left - 1)
    return left


@app.task(name="nap", queue=QUEUE)
async def nap(seconds: float) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return "rested"


@app.task(name="hold", queue=QUEUE)
async def hold(note: str) -> str:
    """Go on until it is released."""
    write(note, "started")
    while not is_released(note):  # noqa: ASYNC110 (a file gives no event)
        await asyncio.sleep(0.01)
    write(note, "done")
    return "held"


@app.task(name="hold_in_thread", queue=QUEUE)
def hold_in_thread(note: str) -> str:
    """Do the same in a thread, which can't be cancelled."""
    write(note, "started")
    while not is_released(note):
        time.sleep(0.01)
    write(note, "done")
    return "held"


@app.task(name="block", queue=QUEUE)
async def block(note: str) -> None:
    """Block the event loop until it is released, as no handler should."""
    write(note, "started")
    while not is_released(note):
        time.sleep(0.01)  # noqa: ASYNC251 (the point of it)
    write(note, "done")


@app.task(name="stubborn", queue=QUEUE)
async def stubborn(note: str) -> None:
    """Go on whatever happens."""
    write(note, "started")
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            write(note, "cancelled")


@app.task(name="leak", queue=QUEUE)
async def leak(note: str) -> None:
    """Wait for a thread that nobody can end."""
    write(note, "started")
    await asyncio.to_thread(time.sleep, 3600)

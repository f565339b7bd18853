"""The app that the command line's tests run: quick, slow, failing and blocking tasks."""

from __future__ import annotations

import time
from pathlib import Path

import anyio

from headrace import App, Context, FailPermanently, Limit

app = App()


def write(note: str, text: str) -> None:
    """Tell the test how far a handler is."""
    Path(note).write_text(text)


@app.task(name="add", queue="quick")
async def add(a: int, b: int = 1) -> int:
    """Return the sum."""
    return a + b


@app.task(name="fail", queue="quick", max_attempts=1)
async def fail(text: str = "boom") -> None:
    """Fail for good."""
    raise FailPermanently(text)


@app.task(name="nap", queue="slow")
async def nap(seconds: float, note: str) -> str:
    """Write to the note when it starts and how it ends, and sleep in between."""
    write(note, "started")
    try:
        await anyio.sleep(seconds)
    except BaseException:
        write(note, "cancelled")
        raise
    write(note, "done")
    return "rested"


@app.task(name="block", queue="slow")
async def block(seconds: float, note: str) -> None:
    """Write to the note and block the event loop, as no handler should."""
    write(note, "started")
    time.sleep(seconds)  # noqa: ASYNC251 (the point of it)


@app.task(name="charge", queue="quick", limits=[Limit(by="customer", concurrency=1)])
async def charge(customer: str, cents: int = 1) -> int:
    """Return the cents, one job of a customer at a time."""
    return cents


@app.task(name="headers", queue="quick")
async def headers(context: Context[None]) -> dict[str, str]:
    """Return the job's headers."""
    return dict(context.headers)


not_an_app = object()

"""A sync app as a program's module has one: forked, pickled, and served by a worker."""

from __future__ import annotations

import os

from headrace import App, Context, SyncApp

app = SyncApp(os.environ.get("HEADRACE_URL", "memory://sync-app"), tenant="sync")
inner: App[None] = App(os.environ.get("HEADRACE_URL", "memory://sync-app"), tenant="sync")
bound = SyncApp(inner)


@app.task(queue="work")
async def double(number: int) -> int:
    """Return twice a number."""
    return 2 * number


@app.task(queue="work", executor="process")
def where() -> int:
    """Return the process in which it runs."""
    return os.getpid()


@app.cron("0 9 * * 1", id="weekly")
@app.task(queue="work")
def report(context: Context[None], region: str = "eu") -> str:
    """Say what it is a report of."""
    return f"{context.queue}: {region}"


@inner.task(queue="work")
async def triple(number: int) -> int:
    """Return three times a number."""
    return 3 * number


thrice = bound.bind(triple)

"""The worker process of the crash tests: it notes what its handlers do in a ledger.

Run as ``python -m tests.apps.crash_app OPTIONS`` with the worker's options as JSON. The environment
says the rest: ``HEADRACE_REDIS_URL``, ``CRASH_NAME``, ``CRASH_DIRECTORY`` (where the ledger and the
gates are), ``CRASH_WITHOUT`` (tasks that this release doesn't know) and ``CRASH_LOOP``.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from headrace import App, CallNext, Context, FailPermanently, Failure, Limit, Worker
from headrace.events import AttemptEnded, AttemptStarted, WorkerEvent
from tests.support.adopt import adopt_task
from tests.support.ledger import Ledger

QUEUE = "crash"
POLL_S = 0.005
PLACES = 2
"""How many jobs of a key run at once."""
KEYS = 5

name = os.environ.get("CRASH_NAME", "")
directory = Path(os.environ.get("CRASH_DIRECTORY", "."))
ledger = Ledger(directory / "ledger")
app = App(tenant="crash")


@app.middleware
async def note(context: Context[None], call_next: CallNext) -> Any:
    """Write down the start, and how the handler was left."""
    ledger.write("start", context.job_id, context.start, name)
    try:
        result = await call_next()
    except BaseException:
        ledger.write("cut", context.job_id, context.start, name)
        raise
    ledger.write("end", context.job_id, context.start, name)
    return result


@app.task(name="echo", queue=QUEUE)
async def echo(value: int) -> int:
    """Return the argument at once."""
    return value


@app.task(name="hold", queue=QUEUE)
async def hold(gate: str) -> str:
    """Run until the gate is open, for all workers or for this one; return the worker's name."""
    while not is_open(gate):  # noqa: ASYNC110 (a gate is opened by another process)
        await asyncio.sleep(POLL_S)
    return name


@app.task(name="slow", queue=QUEUE)
async def slow(seconds: float) -> float:
    """Take some time."""
    await asyncio.sleep(seconds)
    return seconds


@app.task(name="block", queue=QUEUE)
async def block(seconds: float) -> str:
    """Stop the event loop, as a handler that forgot an ``await`` does."""
    time.sleep(seconds)  # noqa: ASYNC251
    return name


@app.task(name="block_until", queue=QUEUE)
async def block_until(gate: str) -> str:
    """Stop the event loop until the gate is open."""
    while not is_open(gate):
        time.sleep(POLL_S)  # noqa: ASYNC251
    return name


@app.task(
    name="limited", queue=QUEUE, max_stalls=1_000, limits=[Limit(by="key", concurrency=PLACES)]
)
async def limited(key: str, seconds: float) -> None:
    """Hold a place of its key, by a lock that ends with the process at the latest."""
    with ExitStack() as stack:
        for place in range(PLACES):
            lock = stack.enter_context((directory / f"place-{key}-{place}").open("w"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            break
        else:
            (directory / f"over-{key}-{name}").touch()
        await asyncio.sleep(seconds)


@app.task(name="fair", queue=QUEUE, max_stalls=1_000, fair_by="key")
async def fair(key: str, seconds: float) -> None:
    """Run for a time; keys take turns."""
    await asyncio.sleep(seconds)


@app.task(name="poison", queue=QUEUE)
async def poison() -> None:
    """End the process without a word, as a crash in C code does."""
    os._exit(1)


@app.task(name="doomed", queue=QUEUE, on_failed="mourn")
async def doomed(seconds: float) -> None:
    """Fail for good after some time."""
    await asyncio.sleep(seconds)
    raise FailPermanently("doomed")


@app.task(name="mourn", queue=QUEUE)
async def mourn(job_id: str, arguments: dict[str, Any], failure: Failure) -> str:
    """Return which job has failed."""
    return job_id


def is_open(gate: str) -> bool:
    """Whether a test has opened a gate."""
    return (directory / f"gate-{gate}").exists() or (directory / f"gate-{gate}-{name}").exists()


def producer(url: str, *, retry_for: float = 10.0) -> App[None]:
    """Return an app with the same tasks for another address."""
    other: App[None] = App(url, tenant="crash", retry_for=retry_for)
    for task in app.tasks.values():
        adopt_task(other, task)
    return other


def tell(event: WorkerEvent) -> None:
    """Write an event as one line; those of every job would be too many."""
    if not isinstance(event, AttemptStarted | AttemptEnded):
        say(type(event).__name__, msgspec.to_builtins(event))


def say(what: str, fields: dict[str, Any] | None = None) -> None:
    """Write one line of JSON."""
    os.write(1, msgspec.json.encode({"what": what, **(fields or {})}) + b"\n")


async def watch_readiness(worker: Worker) -> None:
    """Tell whenever the worker becomes ready or ceases to be."""
    was_ready = False
    while True:
        if worker.is_ready != was_ready:
            was_ready = not was_ready
            say("ready" if was_ready else "unready")
        await asyncio.sleep(POLL_S)


async def work(options: dict[str, Any]) -> None:
    """Run one worker until SIGTERM."""
    worker = Worker(app, name=name, emit=tell, **options)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
    watch = asyncio.create_task(watch_readiness(worker))
    await worker.run()
    watch.cancel()


LOOPS: dict[str, Callable[[Coroutine[Any, Any, None]], None]] = {
    "asyncio": asyncio.run,
    "uvloop": uvloop.run,
}

if __name__ == "__main__":
    for unknown in os.environ.get("CRASH_WITHOUT", "").split():
        del app.tasks[unknown]
    LOOPS[os.environ.get("CRASH_LOOP", "asyncio")](work(msgspec.json.decode(sys.argv[1])))

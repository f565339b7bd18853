"""A process that fires schedules and perhaps runs their jobs, noting each run in a ledger.

Run as ``python -m tests.apps.schedule_app OPTIONS``, see `Options`; the environment says
``HEADRACE_URL``. It writes every event to its standard output, a line of JSON each.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import msgspec

from headrace import App, Context, Every, Worker
from headrace.events import AttemptEnded, AttemptStarted, ScheduleFired, WorkerEvent
from headrace.scheduler.scheduler import Scheduler
from tests.support.ledger import Ledger

QUEUE = "ticks"
TENANT = "schedules"


class Options(msgspec.Struct, kw_only=True):
    """What the process does.

    Attributes:
        name: its own.
        ledger: the file for the runs.
        schedules: what it declares: the id and the seconds between two occurrences.
        app: the app's name.
        runs: whether it is a worker; else a scheduler alone.
        signal: what it sends itself between firing an occurrence and moving its schedule on.
        after: at which occurrence.
    """

    name: str
    ledger: str
    schedules: dict[str, float] = {}
    app: str = "shop"
    runs: bool = True
    signal: int = 0
    after: int = 1


def tell(event: WorkerEvent) -> None:
    """Write an event as one line; those of every job would be too many."""
    if not isinstance(event, AttemptStarted | AttemptEnded):
        line = {"what": type(event).__name__, **msgspec.to_builtins(event)}
        os.write(1, msgspec.json.encode(line) + b"\n")


def make_app(options: Options) -> App[None]:
    """Return the app that the options describe."""
    app: App[None] = App(tenant=TENANT, name=options.app)
    ledger = Ledger(Path(options.ledger))

    @app.task(name="tick", queue=QUEUE)
    async def tick(context: Context[None]) -> None:
        ledger.write("start", context.job_id, context.start, options.name)

    for schedule_id, seconds in options.schedules.items():
        app.schedule(schedule_id, tick.job(), Every(seconds))
    return app


async def main(options: Options) -> None:
    """Run until SIGTERM."""
    fired = 0

    def emit(event: WorkerEvent) -> None:
        nonlocal fired
        tell(event)
        if isinstance(event, ScheduleFired):
            fired += 1
            if options.signal and fired == options.after:
                os.kill(os.getpid(), options.signal)

    app = make_app(options)
    run: Worker | Scheduler
    if options.runs:
        run = Worker(app, [QUEUE], name=options.name, emit=emit, sweep_interval=0.5, lease=1)
    else:
        run = Scheduler(app, name=options.name, emit=emit)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, run.stop)
    await run.run()


if __name__ == "__main__":
    asyncio.run(main(msgspec.json.decode(sys.argv[1], type=Options)))

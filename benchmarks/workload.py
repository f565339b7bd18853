"""The handlers that are measured, and the worker process that runs them.

It needs headrace and uvloop only: workers run in an environment that has nothing else.
"""

from __future__ import annotations

import itertools
import sys
import time

import uvloop

import headrace
from headrace import App, Worker

QUEUE = "bench"
SLOTS = 100
BUSY_NS = 200_000
HAS_LIMITS = hasattr(headrace, "Limit")
"""Whether the code that is measured, which may be an older one, knows limits."""


async def noop(x: int) -> int:
    """Return its argument, so that there is a result to keep."""
    return x


async def limited(x: int, *, key: int) -> int:
    """Return its argument; so many jobs of a key may run at once."""
    return x + 0 * key


async def fair(x: int, *, key: int) -> int:
    """Return its argument; keys take turns."""
    return x + 0 * key


_begun = itertools.count()


async def begin(sent_ns: int, *, key: int) -> tuple[int, int]:
    """Return how many jobs of this kind began before in this process, and `since`."""
    return next(_begun) + 0 * key, time.monotonic_ns() - sent_ns


async def small(text: str) -> None:
    """Take some text; its jobs are enqueued and never run."""


async def since(sent_ns: int) -> int:
    """Return how long ago, in nanoseconds, the producer was at ``sent_ns``.

    Linux has one monotonic clock for all processes.
    """
    return time.monotonic_ns() - sent_ns


async def busy(x: int) -> int:
    """Return the argument after 200 µs of this thread's own processor time."""
    end_ns = time.thread_time_ns() + BUSY_NS
    while time.thread_time_ns() < end_ns:
        pass
    return x


class Workload:
    """An app on one server, with the handlers above as its tasks."""

    def __init__(self, url: str) -> None:
        self.app: App[None] = App(url)
        self.noop = self.app.task(queue=QUEUE)(noop)
        if HAS_LIMITS:
            limits = [headrace.Limit(by="key", concurrency=2)]
            self.limited = self.app.task(queue=QUEUE, limits=limits)(limited)
            self.fair = self.app.task(queue=QUEUE, fair_by="key")(fair)
            self.begin = self.app.task(queue=QUEUE, fair_by="key", name="begin")(begin)
        self.begin_in_order = self.app.task(queue=QUEUE, name="begin_in_order")(begin)
        self.small = self.app.task(queue=QUEUE)(small)
        self.since = self.app.task(queue=QUEUE)(since)
        self.busy = self.app.task(queue=QUEUE)(busy)


app = Workload("redis://localhost").app
"""For `headrace worker`, whose command line says where the server is."""


def main() -> None:
    """Run one worker with default settings on the server whose URL is the first argument."""
    uvloop.run(Worker(Workload(sys.argv[1]).app, concurrency=SLOTS).run())


if __name__ == "__main__":
    main()

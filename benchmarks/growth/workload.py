"""The tasks that are measured, on several queues if need be, and the worker that runs them.

It needs headrace and uvloop only: workers run in an environment that has nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import islice

import uvloop

import headrace
from headrace import App, Job, QueueStats, Worker

PIECE = 20_000
"""Jobs in one call of `enqueue_many`, which returns as many handles."""
FAR_DELAYS_S = [float(seconds) for seconds in range(86_400, 2 * 86_400, 97)]
"""Delays of jobs that fall due after all is over."""
HAS_LIMITS = hasattr(headrace, "Limit")
"""Whether the code that is measured, which may be an older one, knows limits."""


async def noop(x: int) -> int:
    """Return its argument, so that there is a result to keep."""
    return x


async def limited(x: int, *, key: int) -> int:
    """Return its argument; so many jobs of a key may run at once."""
    return x + 0 * key


async def in_turns(x: int, *, key: int) -> int:
    """Return its argument; the keys take turns."""
    return x + 0 * key


async def closed(x: int) -> int:
    """Return its argument, once a day."""
    return x


async def measure_text(text: str) -> int:
    """Return how long a text is."""
    return len(text)


class GrowthLoad:
    """An app on one server, with tasks on each of ``queues`` queues; those with limits on one."""

    def __init__(self, url: str, queues: int = 1) -> None:
        self.url = url
        self.app: App[None] = App(url)
        self.queues = [f"bench-{number}" for number in range(queues)]
        self.noop = self.app.task(queue=self.queues[0])(noop)
        if HAS_LIMITS:
            by_key, by_day = headrace.Limit(by="key", concurrency=100), headrace.Limit(rate="1/d")
            self.limited = self.app.task(queue=self.queues[0], limits=[by_key])(limited)
            self.in_turns = self.app.task(queue=self.queues[0], fair_by="key")(in_turns)
            self.closed = self.app.task(queue=self.queues[0], limits=[by_day])(closed)
        self.measure_text = self.app.task(queue=self.queues[0])(measure_text)

    async def fill(self, count: int) -> None:
        """Enqueue ``count`` jobs that do nothing, as many on each queue."""
        for name in self.queues:
            call = self.noop.options(queue=name)
            await self.enqueue(call.job(x=n) for n in range(count // len(self.queues)))

    async def enqueue(self, jobs: Iterable[Job]) -> None:
        """Enqueue jobs and keep none of their handles, which for a million are 200 MB."""
        source = iter(jobs)
        while await self.app.enqueue_many(islice(source, PIECE)):
            pass

    async def stats(self) -> list[QueueStats]:
        """Return the counts of each queue."""
        return [await self.app.queue(name).stats() for name in self.queues]

    async def pause(self) -> None:
        """Pause every queue."""
        for name in self.queues:
            await self.app.queue(name).pause()

    async def resume(self) -> None:
        """Resume every queue."""
        for name in self.queues:
            await self.app.queue(name).resume()


def main() -> None:
    """Run one worker; the arguments are the URL, the number of queues, and that of slots."""
    url, queues, slots = sys.argv[1:]
    load = GrowthLoad(url, int(queues))
    uvloop.run(Worker(load.app, load.queues, concurrency=int(slots)).run())


if __name__ == "__main__":
    main()

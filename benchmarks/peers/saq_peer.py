"""SAQ (asyncio; coroutines that each block on a list)."""

from __future__ import annotations

import asyncio
import importlib
import uuid
from typing import Any

from benchmarks.peers.program import Peer, Recorder, main, run

SLOTS = 100
GATHERED = 1_000
SUBSCRIBED_AFTER_S = 0.5

recorder = Recorder()


async def noop(_context: Any, *, x: int) -> int:
    """Return its argument, so that there is a result to keep."""
    recorder.ran()
    return x


async def since(_context: Any, *, sent_ns: int) -> None:
    """Record how long ago the producer was at ``sent_ns``."""
    recorder.started(sent_ns)


class SaqPeer(Peer):
    """Its Redis queue with hiredis, as its documents advise."""

    name = "SAQ"
    notes = (
        "hiredis, uvloop, 100 coroutines, results kept 10 min (its default); no bulk call: 1,000 "
        "enqueues gathered; round trip by `queue.listen`, since `queue.apply` polls (0.5 s)"
    )

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.saq: Any = importlib.import_module("saq")
        self.queue: Any = None
        self.listening: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect."""
        self.queue = self.saq.Queue.from_url(self.url)
        await self.queue.connect()

    async def close(self) -> None:
        """Disconnect."""
        if self.listening is not None:
            self.listening.cancel()
        await self.queue.disconnect()

    async def enqueue(self, x: int) -> None:
        """Await one enqueue."""
        await self.queue.enqueue("noop", x=x)

    async def enqueue_many(self, count: int) -> None:
        """Gather enqueues."""
        for first in range(0, count, GATHERED):
            numbers = range(first, min(first + GATHERED, count))
            await asyncio.gather(*(self.enqueue(x) for x in numbers))

    async def round_trip(self, x: int) -> None:
        """Listen for the end, enqueue, and read the result."""
        if self.listening is None:
            # Keeps the subscription open, which else begins and ends with every job.
            self.listening = asyncio.create_task(self.listen("none"))
            await asyncio.sleep(SUBSCRIBED_AFTER_S)
        key = uuid.uuid4().hex
        end = asyncio.create_task(self.listen(key))
        await asyncio.sleep(0)
        await self.queue.enqueue("noop", key=key, x=x)
        await end
        assert (await self.queue.job(key)).result == x

    async def listen(self, key: str) -> None:
        """Wait for the end of one job."""
        ends = self.saq.job.TERMINAL_STATUSES
        await self.queue.listen([key], lambda _key, status: status in ends, timeout=None)

    async def send(self, sent_ns: int) -> None:
        """Await one enqueue."""
        await self.queue.enqueue("since", sent_ns=sent_ns)

    def work(self) -> None:
        """Run a worker."""
        run(self._work())

    async def _work(self) -> None:
        await self.open()
        functions: list[Any] = [("noop", noop), ("since", since)]
        await self.saq.Worker(self.queue, functions, concurrency=SLOTS).start()
        await self.close()


if __name__ == "__main__":
    main(SaqPeer)

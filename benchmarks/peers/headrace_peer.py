"""headrace itself, in the same harness as its peers."""

from __future__ import annotations

import asyncio
import signal

from benchmarks.peers.program import Peer, Recorder, main, run
from headrace import App, Worker

QUEUE = "bench"
SLOTS = 100

recorder = Recorder()


async def noop(x: int) -> int:
    """Return its argument, so that there is a result to keep."""
    recorder.ran()
    return x


async def since(sent_ns: int) -> None:
    """Record how long ago the producer was at ``sent_ns``."""
    recorder.started(sent_ns)


class HeadracePeer(Peer):
    """The defaults."""

    name = "headrace"
    notes = "defaults: coroutines, 100 slots, events and statistics on, results kept 1 h; uvloop"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.app: App[None] = App(url)
        self.noop = self.app.task(queue=QUEUE)(noop)
        self.since = self.app.task(queue=QUEUE)(since)

    async def open(self) -> None:
        """Open the app."""
        await self.app.__aenter__()

    async def close(self) -> None:
        """Close it."""
        await self.app.aclose()

    async def enqueue(self, x: int) -> None:
        """Await one enqueue."""
        await self.noop.enqueue(x)

    async def enqueue_many(self, count: int) -> None:
        """Give all jobs to the bulk call."""
        await self.app.enqueue_many(self.noop.job(x) for x in range(count))

    async def round_trip(self, x: int) -> None:
        """Request and await the response."""
        assert await self.noop.enqueue_and_wait(x) == x

    async def send(self, sent_ns: int) -> None:
        """Await one enqueue."""
        await self.since.enqueue(sent_ns)

    def work(self) -> None:
        """Run a worker."""
        run(self._work())

    async def _work(self) -> None:
        worker = Worker(self.app, concurrency=SLOTS)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        await worker.run()


if __name__ == "__main__":
    main(HeadracePeer)

"""arq (asyncio; polls a sorted set)."""

from __future__ import annotations

import asyncio
import importlib
from contextlib import suppress
from typing import Any

from benchmarks.peers.program import Peer, Recorder, main, run

SLOTS = 100
GATHERED = 1_000
POLL_S = 0.001
"""Its default is 0.5, of the worker as of who waits for a result."""

recorder = Recorder()


async def noop(_context: Any, x: int) -> int:
    """Return its argument, so that there is a result to keep."""
    recorder.ran()
    return x


async def since(_context: Any, sent_ns: int) -> None:
    """Record how long ago the producer was at ``sent_ns``."""
    recorder.started(sent_ns)


class ArqPeer(Peer):
    """Short polls, since it has nothing else."""

    name = "arq"
    notes = (
        "hiredis, uvloop, 100 coroutines, results kept 1 h (its default) and not logged; worker "
        "and result polled every 1 ms (default 500); no bulk call: 1,000 enqueues gathered"
    )

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.connections: Any = importlib.import_module("arq.connections")
        self.worker: Any = importlib.import_module("arq.worker")
        self.settings = self.connections.RedisSettings.from_dsn(url)
        self.pool: Any = None

    async def open(self) -> None:
        """Connect."""
        self.pool = await self.connections.create_pool(self.settings)

    async def close(self) -> None:
        """Disconnect."""
        await self.pool.aclose()

    async def enqueue(self, x: int) -> None:
        """Await one enqueue."""
        await self.pool.enqueue_job("noop", x)

    async def enqueue_many(self, count: int) -> None:
        """Gather enqueues."""
        for first in range(0, count, GATHERED):
            numbers = range(first, min(first + GATHERED, count))
            await asyncio.gather(*(self.enqueue(x) for x in numbers))

    async def round_trip(self, x: int) -> None:
        """Enqueue, then ask for the result until it is there."""
        job = await self.pool.enqueue_job("noop", x)
        assert await job.result(poll_delay=POLL_S) == x

    async def send(self, sent_ns: int) -> None:
        """Await one enqueue."""
        await self.pool.enqueue_job("since", sent_ns)

    def work(self) -> None:
        """Run a worker."""
        run(self._work())

    async def _work(self) -> None:
        worker = self.worker.Worker(
            [noop, since],
            redis_settings=self.settings,
            max_jobs=SLOTS,
            poll_delay=POLL_S,
            log_results=False,
        )
        # It cancels itself when SIGTERM comes.
        with suppress(asyncio.CancelledError):
            await worker.async_run()
        await worker.close()


if __name__ == "__main__":
    main(ArqPeer)

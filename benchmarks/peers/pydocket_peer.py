"""pydocket, on Redis streams."""

from __future__ import annotations

import asyncio
import importlib
import signal
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

from benchmarks.peers.program import Peer, Recorder, main, run

RECORDER = Recorder()
CONCURRENCY = 100
CHECK_EVERY = timedelta(milliseconds=10)
"""How long its loop sleeps while all slots are taken; with its 250 ms a drain mostly sleeps."""
CONNECTIONS = 1_000
"""100, the most by default, are too few for 100 slots, and a job that gets none is lost a while."""
TIMEOUT = timedelta(seconds=10)


async def noop(x: int) -> int:
    """Record that it ran, and return its argument."""
    RECORDER.ran()
    return x


async def since(sent_ns: int) -> None:
    """Record how long ago the producer was at ``sent_ns``."""
    RECORDER.started(sent_ns)


class PydocketPeer(Peer):
    """One Docket for the producer and for the worker."""

    name = "pydocket"
    notes = "minimum_check_interval 10 ms, up to 1,000 connections, results 15 min, add_many"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._docket_module: Any = importlib.import_module("docket")
        self._docket: Any = None
        self._opened = AsyncExitStack()

    async def open(self) -> None:
        """Connect, and register the tasks."""
        url = f"{self.url}?max_connections={CONNECTIONS}"
        docket = self._docket_module.Docket(url=url)
        self._docket = await self._opened.enter_async_context(docket)
        self._docket.register(noop)
        self._docket.register(since)

    async def close(self) -> None:
        """Disconnect."""
        await self._opened.aclose()

    async def enqueue(self, x: int) -> None:
        """Add one task."""
        # By its name, since a function would be registered again at every call.
        await self._docket.add("noop")(x)

    async def enqueue_many(self, count: int) -> None:
        """Add them in one batch, which it sends 1,000 at a time."""
        await self._docket.add_many(self._docket.call("noop")(n) for n in range(count))

    async def round_trip(self, x: int) -> None:
        """Wait for the result by its channel."""
        execution = await self._docket.add("noop")(x)
        await execution.get_result(timeout=TIMEOUT)

    async def send(self, sent_ns: int) -> None:
        """Add one task."""
        await self._docket.add("since")(sent_ns)

    def work(self) -> None:
        """Run a worker in this process."""
        run(self._work())

    async def _work(self) -> None:
        await self.open()
        worker = self._docket_module.Worker(
            self._docket, concurrency=CONCURRENCY, minimum_check_interval=CHECK_EVERY
        )
        async with worker:
            running = asyncio.create_task(worker.run_forever())
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
            await asyncio.wait([running])
        await self.close()


if __name__ == "__main__":
    main(PydocketPeer)

"""streaQ, on Redis streams, with its coredis client."""

from __future__ import annotations

import importlib
from contextlib import AsyncExitStack
from typing import Any

from benchmarks.peers.program import Peer, Recorder, main

RECORDER = Recorder()
CONCURRENCY = 100
BATCH = 1_000
TIMEOUT_S = 10


async def noop(x: int) -> int:
    """Record that it ran, and return its argument."""
    RECORDER.ran()
    return x


async def since(sent_ns: int) -> None:
    """Record how long ago the producer was at ``sent_ns``."""
    RECORDER.started(sent_ns)


class StreaqPeer(Peer):
    """One Worker object, which is streaQ's producer too."""

    name = "streaQ"
    notes = (
        "orjson, silent tasks, results 5 min, enqueue_many of 1,000; "
        "its result() takes 100 ms to leave the channel that it waited on"
    )

    def __init__(self, url: str) -> None:
        super().__init__(url)
        streaq: Any = importlib.import_module("streaq")
        orjson: Any = importlib.import_module("orjson")
        self._worker = streaq.Worker(
            redis_url=url,
            concurrency=CONCURRENCY,
            serializer=orjson.dumps,
            deserializer=orjson.loads,
            anyio_kwargs={"use_uvloop": True},
        )
        self._noop = self._worker.task(noop, silent=True)
        self._since = self._worker.task(since, silent=True)
        self._opened = AsyncExitStack()

    async def open(self) -> None:
        """Connect the worker object without running it."""
        await self._opened.enter_async_context(self._worker)

    async def close(self) -> None:
        """Disconnect it."""
        await self._opened.aclose()

    async def enqueue(self, x: int) -> None:
        """Await one task."""
        await self._noop.enqueue(x)

    async def enqueue_many(self, count: int) -> None:
        """Pipeline them."""
        for first in range(0, count, BATCH):
            numbers = range(first, min(first + BATCH, count))
            await self._worker.enqueue_many([self._noop.enqueue(n) for n in numbers])

    async def round_trip(self, x: int) -> None:
        """Wait for the result by the task's channel."""
        task = await self._noop.enqueue(x)
        await task.result(timeout=TIMEOUT_S)

    async def send(self, sent_ns: int) -> None:
        """Await one task."""
        await self._since.enqueue(sent_ns)

    def work(self) -> None:
        """Run the worker, which handles SIGTERM itself."""
        self._worker.run_sync()


if __name__ == "__main__":
    main(StreaqPeer)

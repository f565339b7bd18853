"""taskiq, with the Redis Streams broker and the result backend of taskiq-redis."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

from benchmarks.peers.program import Peer, Recorder, main

RECORDER = Recorder()
CONCURRENCY = 100
BATCH = 1_000
CONNECTIONS = 20
"""Fewer than jobs: each costs more than waiting for one does, in bulk twice as much."""
POLL_S = 0.0005
RESULT_S = 3_600
TIMEOUT_S = 10


async def noop(x: int) -> int:
    """Record that it ran, and return its argument."""
    RECORDER.ran()
    return x


async def since(sent_ns: int) -> None:
    """Record how long ago the producer was at ``sent_ns``."""
    RECORDER.started(sent_ns)


class TaskiqPeer(Peer):
    """One broker for the producer and for the worker."""

    name = "taskiq"
    notes = (
        "Redis Streams, orjson, --no-parse, 20 connections, results 1 h; "
        "no bulk call (gather of 1,000), no wait for a result (polled each 0.5 ms), "
        "finished messages stay in the stream"
    )

    def __init__(self, url: str) -> None:
        super().__init__(url)
        serializers: Any = importlib.import_module("taskiq.serializers")
        taskiq_redis: Any = importlib.import_module("taskiq_redis")
        serializer = serializers.ORJSONSerializer()
        results = taskiq_redis.RedisAsyncResultBackend(
            url,
            result_ex_time=RESULT_S,
            serializer=serializer,
            max_connection_pool_size=CONNECTIONS,
        )
        broker = taskiq_redis.RedisStreamBroker(url, max_connection_pool_size=CONNECTIONS)
        self._broker = broker.with_result_backend(results).with_serializer(serializer)
        self._noop = self._broker.task("noop")(noop)
        self._since = self._broker.task("since")(since)

    async def open(self) -> None:
        """Create the consumer group, which sees only what is sent later."""
        await self._broker.startup()

    async def close(self) -> None:
        """Disconnect."""
        await self._broker.shutdown()

    async def enqueue(self, x: int) -> None:
        """Await one task."""
        await self._noop.kiq(x)

    async def enqueue_many(self, count: int) -> None:
        """Await 1,000 at a time."""
        for first in range(0, count, BATCH):
            numbers = range(first, min(first + BATCH, count))
            await asyncio.gather(*(self._noop.kiq(n) for n in numbers))

    async def round_trip(self, x: int) -> None:
        """Poll for the result, which is taskiq's only way."""
        task = await self._noop.kiq(x)
        await task.wait_result(check_interval=POLL_S, timeout=TIMEOUT_S)

    async def send(self, sent_ns: int) -> None:
        """Await one task."""
        await self._since.kiq(sent_ns)

    def work(self) -> None:
        """Run what `taskiq worker` runs in a worker process, without its process manager."""
        arguments: Any = importlib.import_module("taskiq.cli.worker.args")
        run: Any = importlib.import_module("taskiq.cli.worker.run")
        run.start_listen(
            arguments.WorkerArgs(
                broker=self._broker,
                modules=[],
                configure_logging=False,
                max_async_tasks=CONCURRENCY,
                no_parse=True,
            )
        )


if __name__ == "__main__":
    main(TaskiqPeer)

"""BullMQ for Python, its worker in Python too."""

from __future__ import annotations

import asyncio
import importlib
import signal
import uuid
from typing import Any

from benchmarks.peers.program import Peer, Recorder, main, run

RECORDER = Recorder()
QUEUE = "peers"
CONCURRENCY = 16
"""Whenever a job comes, every free slot asks for another: 100 would start jobs far later."""
BATCH = 1_000
TIMEOUT_S = 10


async def process(job: Any, _token: str) -> int | None:
    """Run a job by its name: BullMQ has one function per queue."""
    if job.name == "since":
        RECORDER.started(job.data)
        return None
    RECORDER.ran()
    result: int = job.data
    return result


class BullmqPeer(Peer):
    """A queue, and its events where a result is awaited."""

    name = "BullMQ"
    notes = (
        "worker in Python, on a pool of connections, which drains twice as fast as its single one; "
        f"concurrency {CONCURRENCY}, since more start jobs later; addBulk of 1,000"
    )

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._bullmq: Any = importlib.import_module("bullmq")
        self._queue: Any = None
        self._events: Any = None
        self._waiting: dict[str, asyncio.Future[Any]] = {}

    async def open(self) -> None:
        """Connect the queue, and listen to its events."""
        self._queue = self._bullmq.Queue(QUEUE, {"connection": self.url})

    async def close(self) -> None:
        """Disconnect."""
        if self._events is not None:
            await self._events.close()
        await self._queue.close()

    async def enqueue(self, x: int) -> None:
        """Add one job."""
        await self._queue.add("noop", x)

    async def enqueue_many(self, count: int) -> None:
        """Add them in bulk."""
        for first in range(0, count, BATCH):
            numbers = range(first, min(first + BATCH, count))
            await self._queue.addBulk([{"name": "noop", "data": n} for n in numbers])

    async def round_trip(self, x: int) -> None:
        """Wait for the event that brings the result."""
        if self._events is None:
            options = {"connection": self.url, "lastEventId": "0", "blockingTimeout": 1_000}
            self._events = self._bullmq.QueueEvents(QUEUE, options)
            self._events.on("completed", self._complete)
        # An id of its own, so that the event can't be there before anyone waits for it.
        job_id = uuid.uuid4().hex
        waiter = self._waiting[job_id] = asyncio.get_running_loop().create_future()
        await self._queue.add("noop", x, {"jobId": job_id})
        await asyncio.wait_for(waiter, TIMEOUT_S)

    def _complete(self, event: dict[str, Any], _entry_id: str) -> None:
        if (waiter := self._waiting.pop(event["jobId"], None)) is not None:
            waiter.set_result(event["returnvalue"])

    async def send(self, sent_ns: int) -> None:
        """Add one job."""
        await self._queue.add("since", sent_ns)

    def work(self) -> None:
        """Run a worker in this process."""
        run(self._work())

    async def _work(self) -> None:
        redis: Any = importlib.import_module("redis.asyncio")
        # BullMQ blocks for 5 s, which is when the client would give up by default.
        connection = redis.from_url(self.url, decode_responses=True, socket_timeout=None)
        options = {"connection": connection, "concurrency": CONCURRENCY}
        worker = self._bullmq.Worker(QUEUE, process, options)
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        await stopped.wait()
        await worker.close()


if __name__ == "__main__":
    main(BullmqPeer)

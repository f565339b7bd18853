"""RQ (synchronous; one job at a time)."""

from __future__ import annotations

import importlib
from typing import Any

from benchmarks.peers.program import Peer, Recorder, main

MODULE = "benchmarks.peers.rq_peer"
BATCH = 1_000
RESULT_WITHIN_S = 30

recorder = Recorder()


def noop(x: int) -> int:
    """Return its argument, so that there is a result to keep."""
    recorder.ran()
    return x


def since(sent_ns: int) -> None:
    """Record how long ago the producer was at ``sent_ns``."""
    recorder.started(sent_ns)


class RqPeer(Peer):
    """The worker that doesn't fork for each job."""

    name = "RQ"
    notes = (
        "SimpleWorker (runs jobs in its own process, one at a time: its default worker forks for "
        "each), hiredis, pickle, results kept 500 s (its default); enqueue_many of 1,000"
    )
    drain_count = 5_000

    def __init__(self, url: str) -> None:
        super().__init__(url)
        redis: Any = importlib.import_module("redis")
        self.rq: Any = importlib.import_module("rq")
        self.connection = redis.Redis.from_url(url)
        self.queue = self.rq.Queue("bench", connection=self.connection)

    async def open(self) -> None:
        """Connect."""
        self.connection.ping()

    async def close(self) -> None:
        """Disconnect."""
        self.connection.close()

    async def enqueue(self, x: int) -> None:
        """Enqueue by the function's name, since the worker imports it."""
        self.queue.enqueue(f"{MODULE}.noop", x)

    async def enqueue_many(self, count: int) -> None:
        """Give all jobs to the bulk call."""
        prepare = self.rq.Queue.prepare_data
        for first in range(0, count, BATCH):
            numbers = range(first, min(first + BATCH, count))
            self.queue.enqueue_many([prepare(f"{MODULE}.noop", (x,)) for x in numbers])

    async def round_trip(self, x: int) -> None:
        """Enqueue and block on the result's stream."""
        job = self.queue.enqueue(f"{MODULE}.noop", x)
        assert job.latest_result(timeout=RESULT_WITHIN_S).return_value == x

    async def send(self, sent_ns: int) -> None:
        """Enqueue one."""
        self.queue.enqueue(f"{MODULE}.since", sent_ns)

    def work(self) -> None:
        """Run a worker."""
        worker = self.rq.SimpleWorker([self.queue], connection=self.connection)
        worker.log_job_description = False
        worker.work(logging_level="WARNING")


if __name__ == "__main__":
    main(RqPeer)

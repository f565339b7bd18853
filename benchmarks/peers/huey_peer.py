"""huey on Redis (synchronous; threads that block on a list)."""

from __future__ import annotations

import importlib
import logging
from typing import Any

from benchmarks.peers.program import Peer, Recorder, main

THREADS = 4
RESULT_WITHIN_S = 30

recorder = Recorder()


def noop(x: int) -> int:
    """Return its argument, so that there is a result to keep."""
    recorder.ran()
    return x


def since(sent_ns: int) -> None:
    """Record how long ago the producer was at ``sent_ns``."""
    recorder.started(sent_ns)


class HueyPeer(Peer):
    """Blocking reads, and the notification of results that came with version 3."""

    name = "huey"
    notes = (
        f"{THREADS} threads (1 to 64 make no difference beyond the noise, greenlets are slower), "
        "hiredis, pickle, notify_result, results kept until read; no bulk call"
    )

    def __init__(self, url: str) -> None:
        super().__init__(url)
        module: Any = importlib.import_module("huey")
        self.huey = module.RedisHuey("bench", url=url, notify_result=True)
        self.noop = self.huey.task()(noop)
        self.since = self.huey.task()(since)

    async def open(self) -> None:
        """Connect."""
        self.huey.storage.conn.ping()

    async def close(self) -> None:
        """Disconnect."""
        self.huey.storage.conn.close()

    async def enqueue(self, x: int) -> None:
        """Enqueue one."""
        self.noop(x)

    async def enqueue_many(self, count: int) -> None:
        """Enqueue one by one."""
        for x in range(count):
            self.noop(x)

    async def round_trip(self, x: int) -> None:
        """Enqueue and block on the notification of the result."""
        assert self.noop(x).get(blocking=True, timeout=RESULT_WITHIN_S) == x

    async def send(self, sent_ns: int) -> None:
        """Enqueue one."""
        self.since(sent_ns)

    def work(self) -> None:
        """Run a worker."""
        logging.disable(logging.INFO)
        consumer = self.huey.create_consumer(
            workers=THREADS, periodic=False, graceful_signal="TERM", check_worker_health=False
        )
        consumer.run()


if __name__ == "__main__":
    main(HueyPeer)

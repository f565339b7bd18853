"""dramatiq, on its Redis broker and Redis result backend, with threads."""

from __future__ import annotations

import importlib
import signal
import threading
from typing import Any

from benchmarks.peers.program import Peer, Recorder, main

RECORDER = Recorder()
THREADS = 16
"""8 and 32 drain no faster."""
POLL_MS = 2
"""The longest pause of a poll, by default 1 s; with 1 ms it would not pause at all."""
TIMEOUT_MS = 10_000


def noop(x: int) -> int:
    """Record that it ran, and return its argument."""
    RECORDER.ran()
    return x


def since(sent_ns: int) -> None:
    """Record how long ago the producer was at ``sent_ns``."""
    RECORDER.started(sent_ns)


class DramatiqPeer(Peer):
    """One broker for the producer and for the worker."""

    name = "dramatiq"
    notes = (
        f"{THREADS} threads, results 10 min, no bulk call; polls each {POLL_MS} ms instead of up "
        "to 1 s, which takes a third of a processor while idle"
    )

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._dramatiq: Any = importlib.import_module("dramatiq")
        brokers: Any = importlib.import_module("dramatiq.brokers.redis")
        results: Any = importlib.import_module("dramatiq.results")
        backends: Any = importlib.import_module("dramatiq.results.backends.redis")
        self._broker = brokers.RedisBroker(url=url)
        self._broker.add_middleware(results.Results(backend=backends.RedisBackend(url=url)))
        self._dramatiq.set_broker(self._broker)
        self._noop = self._dramatiq.actor(store_results=True)(noop)
        self._since = self._dramatiq.actor(since)

    async def open(self) -> None:
        """Do nothing: the broker connects when it is used."""

    async def close(self) -> None:
        """Disconnect."""
        self._broker.close()

    async def enqueue(self, x: int) -> None:
        """Send one message."""
        self._noop.send(x)

    async def enqueue_many(self, count: int) -> None:
        """Send one message after another: there is no bulk call."""
        for n in range(count):
            self._noop.send(n)

    async def round_trip(self, x: int) -> None:
        """Block on the list that the result will be in."""
        self._noop.send(x).get_result(block=True, timeout=TIMEOUT_MS)

    async def send(self, sent_ns: int) -> None:
        """Send one message."""
        self._since.send(sent_ns)

    def work(self) -> None:
        """Run the worker of `dramatiq`'s command in this process."""
        stopped = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stopped.set())
        worker = self._dramatiq.Worker(self._broker, worker_threads=THREADS, worker_timeout=POLL_MS)
        worker.start()
        stopped.wait()
        worker.stop()
        self._broker.close()


if __name__ == "__main__":
    main(DramatiqPeer)

"""Celery, on the Redis transport and the Redis result backend."""

from __future__ import annotations

import importlib
from typing import Any

from benchmarks.peers.program import Peer, Recorder, main

RECORDER = Recorder()
TIMEOUT_S = 10
THREADS = 4
"""More drain no faster; nor do processes, which need more memory and start jobs later."""
PREFETCH = 128
"""Messages a thread; its documents advise as many for short tasks."""


def noop(x: int) -> int:
    """Record that it ran, and return its argument."""
    RECORDER.ran()
    return x


def since(sent_ns: int) -> None:
    """Record how long ago the producer was at ``sent_ns``."""
    RECORDER.started(sent_ns)


class CeleryPeer(Peer):
    """Two apps: producing with a result backend subscribes to every result's channel."""

    name = "Celery"
    notes = (
        f"pool of {THREADS} threads, prefetch multiplier {PREFETCH}, without gossip, mingle, "
        "heartbeats and remote control, results 1 day, no bulk call (one producer for all)"
    )

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._noop, self._since = self._tasks(self._app(None))
        self._app_with_results = self._app(url)
        self._noop_with_result, _ = self._tasks(self._app_with_results)

    def _app(self, backend: str | None) -> Any:
        celery: Any = importlib.import_module("celery")
        app = celery.Celery("peer", broker=self.url, backend=backend, set_as_current=False)
        app.conf.update(
            task_ignore_result=False,
            task_publish_retry=False,
            worker_prefetch_multiplier=PREFETCH,
            worker_disable_rate_limits=True,
            worker_enable_remote_control=False,
            worker_hijack_root_logger=False,
        )
        return app

    def _tasks(self, app: Any) -> tuple[Any, Any]:
        return app.task(noop, name="noop"), app.task(since, name="since", ignore_result=True)

    async def open(self) -> None:
        """Do nothing: the apps connect when they are used."""

    async def close(self) -> None:
        """Disconnect."""

    async def enqueue(self, x: int) -> None:
        """Send one message."""
        self._noop.delay(x)

    async def enqueue_many(self, count: int) -> None:
        """Send one message after another by one producer."""
        with self._noop.app.producer_or_acquire() as producer:
            for n in range(count):
                self._noop.apply_async((n,), producer=producer)

    async def round_trip(self, x: int) -> None:
        """Wait for the result by its channel."""
        self._noop_with_result.delay(x).get(timeout=TIMEOUT_S)

    async def send(self, sent_ns: int) -> None:
        """Send one message."""
        self._since.delay(sent_ns)

    def work(self) -> None:
        """Run `celery worker`."""
        self._app_with_results.worker_main(
            [
                "worker",
                "--pool=threads",
                f"--concurrency={THREADS}",
                "--loglevel=WARNING",
                "--without-gossip",
                "--without-mingle",
                "--without-heartbeat",
            ]
        )


if __name__ == "__main__":
    main(CeleryPeer)

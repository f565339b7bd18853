"""A worker and a waiter with nothing to do: they cost nothing, and nothing times out."""

from __future__ import annotations

import time
from typing import Any

import redis

from headrace import App, Worker
from headrace.events import StorageLost
from headrace.testing import EventLog, running

QUIET_S = 6.5


def connections(url: str) -> int:
    """Return how many connections the server has accepted so far."""
    with redis.Redis.from_url(url) as client:
        return int(client.info("stats")["total_connections_received"])


async def test_an_idle_worker_and_an_idle_waiter_outlast_every_default_timeout(
    app: App[Any], redis_url: str
) -> None:
    # BC-70: redis-py gives up reads after 5 seconds unless told otherwise.
    @app.task
    async def late() -> str:
        return "done"

    log = EventLog()
    async with running(Worker(app, emit=log)):
        assert await late.enqueue_and_wait() == "done"
        before = connections(redis_url)
        cpu_before = time.process_time()
        job = await late.options(delay=QUIET_S).enqueue()
        assert await job.result(timeout=QUIET_S + 5) == "done"
        assert time.process_time() - cpu_before < QUIET_S / 5
    # The beat thread may open its own meanwhile, and this look is the other.
    assert connections(redis_url) - before <= 2
    assert not log.of(StorageLost)

"""Workers in threads of a test that has no event loop, and callers in several."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier, Thread
from typing import Any, TypeVar

from headrace import SyncApp, Worker
from tests.support.until import POLL_SECONDS, patience

T = TypeVar("T")


@contextmanager
def working(app: SyncApp[Any], *queues: str, **options: Any) -> Iterator[Worker]:
    """Run a worker of an app in a thread; it drains when the block ends."""
    worker = Worker(app, queues or None, **options)
    thread = Thread(target=lambda: asyncio.run(worker.run()), name="worker of a test")
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join()


def blocked_until(predicate: Callable[[], T]) -> T:
    """Call the predicate every few ms until its value is true, and return it."""
    give_up_at = time.monotonic() + patience(10)
    while not (value := predicate()):
        assert time.monotonic() < give_up_at, f"it is {value!r} still"
        time.sleep(POLL_SECONDS)
    return value


def at_a_time(count: int, call: Callable[[int], T]) -> list[T]:
    """Call ``call(0)``, ``call(1)`` and so on, each in a thread, and all of them at once."""
    barrier = Barrier(count)

    def one(number: int) -> T:
        barrier.wait(timeout=30)
        return call(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(one, range(count)))

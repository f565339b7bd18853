"""Programs that end with everything open: ``python -m ... HOW URL``."""

from __future__ import annotations

import sys
import threading

from headrace.storage import Ahead, open_blocking
from tests.apps.blocking_forks import QUEUE, enqueue, enqueue_in_threads


def with_all_open(url: str) -> None:
    """Connections, an inbox and a line with an answer that nobody reads."""
    storage = open_blocking(url)
    enqueue(storage, 2)
    enqueue_in_threads(storage)
    inbox = storage.open_inbox()
    assert inbox.receive(5) is None
    assert inbox.receive(0.01) is None
    line = storage.in_line()
    globals()["kept"] = (storage, inbox, line, Ahead(line.__enter__().stats(QUEUE)))


def in_a_call(url: str) -> None:
    """A thread is in the middle of calls."""
    storage = open_blocking(url)
    enqueue(storage, 2)
    threading.Thread(target=enqueue, args=(storage, 1_000_000), daemon=True).start()
    enqueue(storage, 20)


def by_an_error(url: str) -> None:
    """It exits in the middle of its own."""
    storage = open_blocking(url)
    with storage.in_line() as line:
        first = Ahead(line.stats(QUEUE))
        sys.exit(0 if first else 1)


if __name__ == "__main__":
    {how.__name__: how for how in (with_all_open, in_a_call, by_an_error)}[sys.argv[1]](sys.argv[2])
    sys.stdout.write("fine\n")

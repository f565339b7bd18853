"""huey on its SQLite storage, for `embedded_huey`: for an interpreter that has huey, not headrace.

    python huey_peer.py drain FILE FSYNC COUNT    seconds to enqueue COUNT jobs, and to drain them
    python huey_peer.py worker FILE FSYNC         run jobs until it is killed
    python huey_peer.py start FILE FSYNC COUNT    milliseconds from enqueue to handler, of each job

Each prints its figures as JSON.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
import time
from typing import Any

THREADS = 4
POLL_S = 0.01
"""The default is 0.1 and grows to 10 while there is nothing to do."""
PAUSES_S = 0.01, 0.02
LOOK_EVERY_S = 0.02


def noop(x: int) -> int:
    """Return its argument, so that there is a result to keep."""
    return x


def since(sent_ns: int) -> int:
    """Return how long ago, in nanoseconds, the producer was at ``sent_ns``."""
    return time.monotonic_ns() - sent_ns


class Peer:
    """The queue in a file, with the two tasks.

    Args:
        path: the database.
        is_fsync: whether every commit waits for the disk; if not, SQLite runs with
            ``synchronous=OFF``, since huey knows nothing in between.
    """

    def __init__(self, path: str, *, is_fsync: bool) -> None:
        module: Any = importlib.import_module("huey")
        self.huey = module.SqliteHuey(filename=path, fsync=is_fsync)
        self.noop = self.huey.task()(noop)
        self.since = self.huey.task()(since)

    def consumer(self) -> Any:
        """Return a consumer that has not been started."""
        return self.huey.create_consumer(
            workers=THREADS,
            periodic=False,
            initial_delay=POLL_S,
            max_delay=POLL_S,
            check_worker_health=False,
        )

    def drain(self, count: int) -> list[float]:
        """Enqueue jobs, run them, and wait until all results are there."""
        start = time.perf_counter()
        for n in range(count):
            self.noop(n)
        filled = time.perf_counter()
        self.consumer().start()
        while self.huey.result_count() < count:
            time.sleep(LOOK_EVERY_S)
        return [filled - start, time.perf_counter() - filled]

    def start(self, count: int) -> list[float]:
        """Enqueue jobs one by one for a worker elsewhere."""
        results = []
        for _ in range(count):
            time.sleep(random.uniform(*PAUSES_S))
            results.append(self.since(time.monotonic_ns()))
        return [result.get(blocking=True) / 1e6 for result in results]


def main() -> None:
    """Do what the arguments say."""
    command, path, fsync, *rest = sys.argv[1:]
    peer = Peer(path, is_fsync=fsync == "full")
    if command == "worker":
        peer.consumer().run()
    elif command == "drain":
        print(json.dumps(peer.drain(int(rest[0]))), flush=True)
        sys.exit()
    else:
        print(json.dumps(peer.start(int(rest[0]))))


if __name__ == "__main__":
    main()

"""What is measured runs on a stand: a session of Spark, a server, and a folder."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from pyspark.sql import SparkSession

from benchmarks.growth.points import Values
from benchmarks.spark.usage import Usage
from headrace import SyncApp
from headrace.sync.queue import SyncQueue
from tests.support.redis_server import RedisServer

CORES = 2
QUEUE = "bench-0"
"""The first queue of a `GrowthLoad`."""
KEPT = 10_000_000
"""Ended jobs, and entries of events, that the queue keeps: all."""
RATE = "a second"
COSTS = ("JVM", "Python", "Redis")
"""Microseconds of a processor for a row, by who has used it; this process is one of Python's."""

_CONF = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(CORES),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class Stand:
    """A session, a server and a folder, and how much is measured on them.

    Args:
        spark: the session, with `CORES` cores.
        server: a Redis of its own.
        directory: for whatever is written.
        rows: of a case; some take a part of it.
    """

    def __init__(
        self, spark: SparkSession, server: RedisServer, directory: Path, *, rows: int
    ) -> None:
        self.spark = spark
        self.server = server
        self.rows = rows
        self.directory = directory
        self._numbers = count(1)
        self._usage = Usage(self._user)

    @property
    def url(self) -> str:
        """The address of the server."""
        return self.server.url

    def path(self, name: str) -> str:
        """Return a path at which there is nothing yet."""
        return f"{self.directory}/{name}-{next(self._numbers)}"

    def empty(self) -> None:
        """Empty the server; from then on its queue keeps whatever comes."""
        with self.server.client() as client:
            client.flushall()
        with self.queue() as queue:
            queue.configure(history=KEPT, dead_letters=KEPT, events=KEPT)

    @contextmanager
    def queue(self, url: str = "") -> Iterator[SyncQueue]:
        """Yield the queue that is measured: of the server, or of another address."""
        with SyncApp(url or self.url) as app:
            yield app.queue(QUEUE)

    def measured(self, rows: int, action: Callable[[], object]) -> Values:
        """Return how many rows an action brings a second, and what each costs.

        Args:
            rows: how many it has to bring.
            action: may return how many it has brought.
        """
        before, start = self._usage.read(), time.perf_counter()
        brought = action()
        seconds = time.perf_counter() - start
        assert brought in (None, rows)
        after = self._usage.read()
        costs = {name: 1e6 * (after[name] - before[name]) / rows for name in COSTS}
        return {RATE: rows / seconds, **costs}

    def _user(self, process: psutil.Process) -> str:
        """Return under which of `COSTS` the time of a process goes."""
        if process.pid == self.server.pid:
            return "Redis"
        return "JVM" if process.name() == "java" else "Python"


@contextmanager
def standing(rows: int) -> Iterator[Stand]:
    """Yield a stand with a session that users would have, on two cores."""
    # Its Python processes are this interpreter.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with TemporaryDirectory(prefix="headrace-bench-spark-") as directory:
        builder = SparkSession.builder.master(f"local[{CORES}]").appName("headrace-benchmarks")
        for name, value in {**_CONF, "spark.local.dir": directory}.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        try:
            with RedisServer() as server:
                yield Stand(spark, server, Path(directory), rows=rows)
        finally:
            spark.stop()

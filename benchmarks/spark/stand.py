"""What is measured runs on a stand: a session of Spark, a server, and a folder."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from pyspark.sql import SparkSession

from benchmarks.growth.points import Values
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
"""Microseconds of a processor for a row, by who has used it."""

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
        before, start = self._used_s(), time.perf_counter()
        brought = action()
        seconds = time.perf_counter() - start
        assert brought in (None, rows)
        used = zip(self._used_s(), before, strict=True)
        costs = [1e6 * (after_s - before_s) / rows for after_s, before_s in used]
        return {RATE: rows / seconds, **dict(zip(COSTS, costs, strict=True))}

    def _used_s(self) -> tuple[float, float, float]:
        """Return the processor time of the JVM, of Python, this process included, and of Redis."""
        while True:
            # A process that ends meanwhile leaves its time to its parent, which was read before it.
            with suppress(psutil.NoSuchProcess):
                return self._read_used_s()

    def _read_used_s(self) -> tuple[float, float, float]:
        jvm_s = python_s = redis_s = 0.0
        me = psutil.Process()
        for process in (me, *me.children(recursive=True)):
            times = process.cpu_times()
            used_s = times.user + times.system
            # Who has ended was one of Spark's Python processes, also where the JVM is the parent.
            python_s += times.children_user + times.children_system
            if process.pid == self.server.pid:
                redis_s += used_s
            elif process.name() == "java":
                jvm_s += used_s
            else:
                python_s += used_s
        return jvm_s, python_s, redis_s


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

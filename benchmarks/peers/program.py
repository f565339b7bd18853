"""What the adapters share: the interface that each implements, what handlers record, the commands.

Standard library only: it runs in the peers' environments, which know neither headrace nor the rest
of the benchmarks.

    python -m benchmarks.peers.saq_peer COMMAND [URL [COUNT]]

prints one line of JSON; the commands are ``about``, ``worker`` and those of `MEASURES`.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import mmap
import os
import random
import statistics
import struct
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")

RECORD_VARIABLE = "HEADRACE_PEERS_RECORD"
"""Names the directory that a worker's handlers record into; without it they record nothing."""
PAUSES_S = 0.002, 0.005
"""Time between two jobs of ``start`` and ``round_trip``, in which the worker goes back to wait."""
WARM_UP_SINGLE = 200
WARM_UP_BULK = 1_000
WARM_UP_ROUND_TRIP = 50


class Peer(ABC):
    """One job queue as the benchmark uses it; the synchronous ones block in these coroutines.

    Attributes:
        name: what the tables call it.
        notes: one line: its settings, and what it lacks.
        drain_count: how many jobs a drain has; fewer where 20,000 would take more than 120 s.

    Args:
        url: redis:// of a fresh server.
    """

    name: ClassVar[str]
    notes: ClassVar[str]
    drain_count: ClassVar[int] = 20_000

    def __init__(self, url: str) -> None:
        self.url = url

    @abstractmethod
    async def open(self) -> None:
        """Connect a producer."""

    @abstractmethod
    async def close(self) -> None:
        """Disconnect it."""

    @abstractmethod
    async def enqueue(self, x: int) -> None:
        """Store one noop job; its handler records and returns ``x``, and the result is kept."""

    @abstractmethod
    async def enqueue_many(self, count: int) -> None:
        """Store noop jobs by the fastest means that the peer's documents offer."""

    @abstractmethod
    async def round_trip(self, x: int) -> None:
        """Store one noop job and wait for its result by the peer's own means."""

    @abstractmethod
    async def send(self, sent_ns: int) -> None:
        """Store one job whose handler calls `Recorder.started` with ``sent_ns``."""

    @abstractmethod
    def work(self) -> None:
        """Run one worker, 100 jobs at a time or the peer's best, results kept, until SIGTERM."""


# noop jobs run, monotonic ns of the first and the last
RAN = struct.Struct("=QQQ")
STARTED = struct.Struct("=Q")


class Recorder:
    """What the handlers call; for any number of threads and of forked or started processes.

    Linux has one monotonic clock for all processes, so nothing passes through the queue.
    """

    def __init__(self) -> None:
        self._directory = os.environ.get(RECORD_VARIABLE, "")
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._ran: mmap.mmap | None = None
        self._started: int | None = None
        self._count = 0
        self._first_ns = 0

    def ran(self) -> None:
        """Count one noop job."""
        with self._lock:
            now_ns = time.monotonic_ns()
            self._count += 1
            if self._ran is None:
                self._first_ns = now_ns
                self._ran = self._counters()
            # A mapped file costs less than a microsecond a job, and outlives the process.
            RAN.pack_into(self._ran, 0, self._count, self._first_ns, now_ns)

    def started(self, sent_ns: int) -> None:
        """Note how long ago the producer was at ``sent_ns`` of the monotonic clock."""
        latency_ns = time.monotonic_ns() - sent_ns
        with self._lock:
            if self._started is None:
                path = f"{self._directory}/started" if self._directory else os.devnull
                self._started = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(self._started, STARTED.pack(latency_ns))

    def _counters(self) -> mmap.mmap:
        if not self._directory:
            return mmap.mmap(-1, RAN.size)
        path = Path(self._directory) / f"{os.getpid()}.ran"
        path.write_bytes(bytes(RAN.size))
        with path.open("r+b") as file:
            return mmap.mmap(file.fileno(), RAN.size)


def read_ran(directory: Path) -> tuple[int, float]:
    """Return how many noop jobs have run, and the seconds from the first one to the last."""
    rows = [row for path in directory.glob("*.ran") if (row := path.read_bytes())]
    ran = [row for row in map(RAN.unpack, rows) if row[0]]
    if not ran:
        return 0, 0.0
    counts, firsts, lasts = zip(*ran, strict=True)
    return sum(counts), (max(lasts) - min(firsts)) / 1e9


def read_started(directory: Path) -> list[float]:
    """Return the milliseconds from sending to handler of the jobs that have started, in order."""
    path = directory / "started"
    content = path.read_bytes() if path.exists() else b""
    return [latency_ns / 1e6 for (latency_ns,) in STARTED.iter_unpack(content)]


def half_and_99(times_ms: Sequence[float]) -> dict[str, float]:
    """Return the milliseconds that half of the times, and 99 of 100, keep to."""
    cuts = statistics.quantiles(times_ms, n=100)
    return {"p50_ms": cuts[49], "p99_ms": cuts[98]}


async def single(peer: Peer, count: int) -> dict[str, float]:
    """Enqueue one after another."""
    for n in range(WARM_UP_SINGLE):
        await peer.enqueue(n)
    times_ms = []
    used_s = time.process_time()
    before = start = time.perf_counter()
    for n in range(count):
        await peer.enqueue(n)
        now = time.perf_counter()
        times_ms.append((now - before) * 1000)
        before = now
    used_s = time.process_time() - used_s
    rate = count / (before - start)
    return {"rate": rate, "cpu_us": used_s / count * 1e6, **half_and_99(times_ms)}


async def bulk(peer: Peer, count: int) -> dict[str, float]:
    """Enqueue all at once, `WARM_UP_BULK` of the jobs before the clock starts."""
    await peer.enqueue_many(WARM_UP_BULK)
    start = time.perf_counter()
    await peer.enqueue_many(count - WARM_UP_BULK)
    return {"rate": (count - WARM_UP_BULK) / (time.perf_counter() - start)}


async def start(peer: Peer, count: int) -> dict[str, float]:
    """Send jobs one by one to a worker elsewhere, whose handlers record when they start."""
    for _ in range(count):
        await asyncio.sleep(random.uniform(*PAUSES_S))
        await peer.send(time.monotonic_ns())
    return {"sent": count}


async def round_trip(peer: Peer, count: int) -> dict[str, float]:
    """Request and await one result after another."""
    times_ms = []
    for n in range(WARM_UP_ROUND_TRIP + count):
        await asyncio.sleep(random.uniform(*PAUSES_S))
        begun = time.perf_counter()
        await peer.round_trip(n)
        times_ms.append((time.perf_counter() - begun) * 1000)
    return half_and_99(times_ms[WARM_UP_ROUND_TRIP:])


Measure = Callable[[Peer, int], Coroutine[Any, Any, dict[str, float]]]
MEASURES: dict[str, Measure] = {
    "single": single,
    "bulk": bulk,
    "start": start,
    "round_trip": round_trip,
}


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on uvloop where the environment has it, as that of every asyncio peer has."""
    try:
        uvloop: Any = importlib.import_module("uvloop")
    except ImportError:
        return asyncio.run(work)
    result: T = uvloop.run(work)
    return result


async def produce(make: type[Peer], url: str, measure: Measure, count: int) -> dict[str, float]:
    """Measure one producer."""
    peer = make(url)
    await peer.open()
    try:
        return await measure(peer, count)
    finally:
        await peer.close()


def main(make: type[Peer]) -> None:
    """Do what the arguments say with the peer that ``make`` makes."""
    match sys.argv[1:]:
        case ["about"]:
            about = {"name": make.name, "notes": make.notes, "drain_count": make.drain_count}
            print(json.dumps(about))
        case ["worker", url]:
            make(url).work()
        case [command, url, count] if command in MEASURES:
            print(json.dumps(run(produce(make, url, MEASURES[command], int(count)))))
        case _:
            sys.exit(f"usage: {sys.argv[0]} about | worker URL | {' | '.join(MEASURES)} URL COUNT")

"""What reading jobs back costs: the server's instructions for each, and a whole export.

python -m benchmarks reading_back
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks.callgrind import Callgrind
from benchmarks.growth.caller import calling
from benchmarks.growth.workload import GrowthLoad
from benchmarks.harness import Figure, Goal, repeated, serving
from benchmarks.instructions import QUIET
from headrace.app import clients_of
from headrace.job import ErrorInfo, FailReason, JobState
from headrace.outcome import Failed
from headrace.storage.base import Storage
from headrace.storage.limits import BATCH_LIMIT
from tests.support.redis_server import RedisServer

JOBS, ROUNDS = 2_000, 5
LETTERS = 10_000
EXHAUSTED = Failed(FailReason.EXHAUSTED, ErrorInfo("ValueError", "no address", "line\n" * 100))

TELLS_ITS_PEAK = """
import atexit, sys
from headrace.cli import main

def tell():
    with open("/proc/self/status") as status:
        sys.stderr.writelines(line for line in status if line.startswith("VmHWM"))

atexit.register(tell)
main()
"""
"""The command; what `getrusage` says of a process is at least what its parent had."""


class Reading:
    """A server with ended jobs whose instructions are counted while they are read."""

    def __init__(self, load: GrowthLoad, storage: Storage) -> None:
        self._queue = load.queues[0]
        self._storage = storage
        self._ids: list[str] = []

    async def watch(self) -> None:
        """Look at all, and say who is to be told: as waiters do."""
        for first in range(0, JOBS, BATCH_LIMIT):
            ids = self._ids[first : first + BATCH_LIMIT]
            await self._storage.watch(self._queue, ids, channel="")

    async def outcomes(self) -> None:
        """Look at all."""
        for first in range(0, JOBS, BATCH_LIMIT):
            ends = await self._storage.outcomes(self._queue, self._ids[first : first + BATCH_LIMIT])
            assert all(end.result is not None for end in ends)

    async def export(self) -> None:
        """Read all, page by page."""
        ids: list[str] = []
        cursor, has_more = "", True
        while has_more:
            page = await self._storage.export(self._queue, JobState.COMPLETED, cursor=cursor)
            ids += [record.id for record in page.records]
            cursor, has_more = page.cursor, page.has_more
        assert len(ids) == JOBS
        self._ids = ids


async def counted() -> dict[str, float]:
    """Return the server's instructions a job, by the verb."""
    with tempfile.TemporaryDirectory(prefix="headrace-callgrind-") as directory:
        callgrind = Callgrind(Path(directory))
        with RedisServer(*QUIET, under=callgrind.command) as server:
            load = GrowthLoad(server.url)
            storage = clients_of(load.app).open_storage()
            async with load.app, calling(load) as caller:
                await caller.run(JOBS)
            reading = Reading(load, storage)
            verbs: dict[str, Callable[[], Awaitable[None]]] = {
                "export": reading.export,
                "outcomes": reading.outcomes,
                "watch": reading.watch,
            }
            counts = {}
            for name, verb in verbs.items():
                callgrind.count(server.pid)
                for _ in range(ROUNDS):
                    await verb()
                counts[name] = callgrind.count(server.pid) / (ROUNDS * JOBS)
            await storage.aclose()
    return counts


def timed(words: list[str], lines: int) -> list[float]:
    """Return the seconds and the MiB that a command takes to print so many lines."""
    with tempfile.TemporaryFile() as out:
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", TELLS_ITS_PEAK, *words],
            stdout=out,
            stderr=subprocess.PIPE,
            check=True,
        )
        took_s = time.perf_counter() - start
        out.seek(0)
        assert sum(1 for _ in out) == lines
    return [took_s, int(done.stderr.split()[-2]) / 1024]


async def exported(url: str) -> list[float]:
    """Return what many dead letters take beyond what the command takes without any."""
    load = GrowthLoad(url)
    async with load.app, calling(load) as caller:
        await caller.run(LETTERS, EXHAUSTED)
    export = ["job", "export", "--queue", load.queues[0], "--url", url, "--state"]
    nothing = await asyncio.to_thread(timed, [*export, "completed"], 0)
    everything = await asyncio.to_thread(timed, [*export, "failed"], LETTERS)
    return [more - base for more, base in zip(everything, nothing, strict=True)]


async def both() -> list[float]:
    """Export from a server and from a directory."""
    with serving() as server, tempfile.TemporaryDirectory() as directory:
        return [*await exported(server.url), *await exported(f"file://{directory}/data")]


async def measure() -> list[Figure]:
    """Count each verb, and time the command."""
    counts = await counted()
    redis_s, redis_mib, file_s, file_mib = await repeated(both, warm_ups=0, repeats=3)
    goals = {"outcomes": Goal(counts["watch"] / 3)}
    return [
        *(Figure(f"Redis, {n}", "instr.", [v], goals.get(n)) for n, v in counts.items()),
        Figure(f"job export, {LETTERS:,}, Redis", "s", redis_s),
        Figure(f"job export, {LETTERS:,}, Redis", "MiB", redis_mib),
        Figure(f"job export, {LETTERS:,}, file://", "s", file_s),
        Figure(f"job export, {LETTERS:,}, file://", "MiB", file_mib),
    ]

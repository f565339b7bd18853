"""A bulk write beside `enqueue_many`: rows a second, and what it takes of the producer's memory.

    python -m benchmarks.writes ROWS    # in turns, on Redis and in a directory

Each run is a process of its own, so that its peak of memory is its own.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Iterator

import msgspec

from benchmarks.harness import Figure, repeated, serving
from benchmarks.workload import QUEUE, Workload
from headrace import Job

ROWS = 100_000
REPEATS = 3


class Run(msgspec.Struct, frozen=True):
    """What one process told.

    Attributes:
        staged_s: until the block's end, of a bulk write.
        all_s: until all jobs were there.
        grown_kib: how much its memory grew at most.
    """

    staged_s: float
    all_s: float
    grown_kib: int


def jobs_of(load: Workload, rows: int) -> Iterator[Job[int]]:
    """Yield jobs with ids of the caller's own, as of the rows of a file."""
    return (load.noop.options(id=f"row-{row}").job(x=row) for row in range(rows))


async def write(url: str, way: str, rows: int) -> Run:
    """Bring all rows in, by one way or the other."""
    load = Workload(url)
    async with load.app:
        await load.app.queue(QUEUE).stats()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = staged = time.perf_counter()
        if way == "bulk":
            async with load.app.bulk("rows", queue=QUEUE) as bulk:
                await bulk.add_many(jobs_of(load, rows))
                staged = time.perf_counter()
            assert bulk.report.added == rows
        else:
            await load.app.enqueue_many(jobs_of(load, rows))
        end = time.perf_counter()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return Run(staged - start, end - start, grown)


async def run(url: str, way: str, rows: int) -> Run:
    """Do that in a process of its own."""
    words = (sys.executable, "-m", "benchmarks.writes", url, way, f"{rows}")
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    told, _ = await process.communicate()
    assert process.returncode == 0
    return msgspec.json.decode(told, type=Run)


async def in_turns(rows: int, repeats: int) -> list[Figure]:
    """Run every way on every storage, one after another, a number of times."""
    names = [
        f"{way}, {where}: {what}"
        for where in ("Redis", "file://")
        for way in ("enqueue_many", "app.bulk")
        for what in ("rows/s", "MiB")
    ]
    with serving() as server, server.client() as client:

        async def once() -> list[float]:
            values: list[float] = []
            for kind in ("redis", "file"):
                for way in ("many", "bulk"):
                    client.flushall()
                    with tempfile.TemporaryDirectory() as directory:
                        url = server.url if kind == "redis" else f"file://{directory}"
                        told = await run(url, way, rows)
                    values += [rows / told.all_s, told.grown_kib / 1024]
            return values

        columns = await repeated(once, warm_ups=0, repeats=repeats)
    units = [name.rpartition(": ")[2] for name in names]
    return [
        Figure(name.rpartition(": ")[0], unit, column)
        for name, unit, column in zip(names, units, columns, strict=True)
    ]


async def measure() -> list[Figure]:
    """Measure `ROWS` rows."""
    return await in_turns(ROWS, REPEATS)


def main(words: list[str]) -> None:
    """Run one way, or all in turns."""
    if len(words) > 1:
        url, way, rows = words
        print(msgspec.json.encode(asyncio.run(write(url, way, int(rows)))).decode())
        return
    for figure in asyncio.run(in_turns(int(words[0]), 1)):
        print(f"{figure.name:<24} {figure.value:>12,.0f} {figure.unit}")


if __name__ == "__main__":
    main(sys.argv[1:])

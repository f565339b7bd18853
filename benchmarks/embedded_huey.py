"""huey's SQLite storage beside ours, in runs that take turns.

huey knows two settings of ``synchronous``: FULL, which is our default too, and OFF, with which a
power loss may damage the file. That is held against our ``sync=normal``, which it can't damage.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.embedded import file_rates, on_file
from benchmarks.embedded_wakeup import COUNT, starts
from benchmarks.environments import environment
from benchmarks.harness import Figure, percentile, repeated
from tests.support.processes import WorkerProcess

PROGRAM = Path(__file__).with_name("huey_peer.py")
COUNTS = {"full": 5_000, "off": 20_000}
REPEATS = 3


async def output_of(*command: str) -> list[float]:
    """Run a command of the peer and return its figures."""
    done = await asyncio.to_thread(
        subprocess.run, [*command], check=True, capture_output=True, text=True
    )
    figures: list[float] = json.loads(done.stdout)
    return figures


async def huey_rates(python: str, sync: str) -> list[float]:
    """Return jobs a second, enqueued and drained."""
    count = COUNTS[sync]
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/huey.db"
        filling, draining = await output_of(python, str(PROGRAM), "drain", path, sync, str(count))
    return [count / filling, count / draining]


async def huey_starts(python: str) -> list[float]:
    """Return p50 and p99 from enqueue to handler, in milliseconds, for one worker that polls."""
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/huey.db"
        command = (python, str(PROGRAM))
        with WorkerProcess(*command, "worker", path, "full", directory=Path(directory)):
            await output_of(*command, "start", path, "full", "5")
            times_ms = await output_of(*command, "start", path, "full", str(COUNT))
    return [percentile(times_ms, 50), percentile(times_ms, 99)]


async def our_starts() -> list[float]:
    """Return the same of ours."""
    async with on_file("full") as load:
        await load.noop.enqueue_and_wait(x=0)
        return await starts(load)


def beside(
    what: str, unit: str, ours: Sequence[float], theirs: Sequence[float]
) -> Iterator[Figure]:
    """Yield both, and by how much ours is better in the runs that followed each other."""
    is_rate = unit == "jobs/s"
    yield Figure(f"{what}, headrace", unit, list(ours))
    yield Figure(f"{what}, huey", unit, list(theirs))
    ratios = [a / b if is_rate else b / a for a, b in zip(ours, theirs, strict=True)]
    yield Figure(f"{what}, ratio", "times", ratios)


async def measure() -> list[Figure]:
    """Measure in turns. huey has no bulk call: ours is held against its jobs one by one."""
    python = (await asyncio.to_thread(environment, "huey")).python

    async def run() -> list[float]:
        return [
            *(await file_rates("full")),
            *(await huey_rates(python, "full")),
            *(await file_rates("normal")),
            *(await huey_rates(python, "off")),
            *(await our_starts()),
            *(await huey_starts(python)),
        ]

    runs = await repeated(run, warm_ups=0, repeats=REPEATS)
    single, bulk, drain, _, huey_single, huey_drain = runs[:6]
    single_2, bulk_2, drain_2, _, huey_single_2, huey_drain_2 = runs[6:12]
    p50, p99, huey_p50, huey_p99 = runs[12:]
    return [
        *beside("FULL: one by one", "jobs/s", single, huey_single),
        *beside("FULL: bulk", "jobs/s", bulk, huey_single),
        *beside("FULL: drain", "jobs/s", drain, huey_drain),
        *beside("NORMAL to OFF: one by one", "jobs/s", single_2, huey_single_2),
        *beside("NORMAL to OFF: bulk", "jobs/s", bulk_2, huey_single_2),
        *beside("NORMAL to OFF: drain", "jobs/s", drain_2, huey_drain_2),
        *beside("FULL: start, p50", "ms", p50, huey_p50),
        *beside("FULL: start, p99", "ms", p99, huey_p99),
    ]

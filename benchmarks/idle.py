"""An idle worker, in a program and of the command line: resident memory, and processor time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil

from benchmarks.environments import ours
from benchmarks.harness import (
    Figure,
    Goal,
    StartWorker,
    repeated,
    serving,
    worker_process,
    working,
)
from benchmarks.workload import SLOTS, Workload
from tests.support.processes import WorkerProcess

SETTLE_S = 2.0
WINDOW_S = 6.0
"""More than two of its blocking calls and one sweep."""


async def run() -> list[float]:
    """Look at one worker of a program, and at one of the command line."""
    memory_mb, percent = await idle_in(worker_process)
    command_mb, _ = await idle_in(command_process)
    return [memory_mb, percent, command_mb]


async def idle_in(start: StartWorker) -> tuple[float, float]:
    """Return what an idle worker that has run one job takes: megabytes, percent of a processor."""
    with serving() as server:
        load = Workload(server.url)
        async with load.app, working(server, load, start) as worker:
            await asyncio.sleep(SETTLE_S)
            process = psutil.Process(worker.pid)
            before = process.cpu_times()
            await asyncio.sleep(WINDOW_S)
            after = process.cpu_times()
            used_s = after.user + after.system - before.user - before.system
            return process.memory_info().rss / 1e6, round(used_s, 2) / WINDOW_S * 100


def command_process(url: str, directory: Path) -> WorkerProcess:
    """Start the worker of the workload as its users do."""
    words = ("worker", "benchmarks.workload:app", "--url", url, "-c", str(SLOTS))
    return WorkerProcess.module("headrace", *words, directory=directory, python=ours().python)


async def measure() -> list[Figure]:
    """Measure new processes."""
    memory_mb, percents, command_mb = await repeated(run, warm_ups=0, repeats=3)
    return [
        Figure("idle worker, resident", "MB", memory_mb, Goal(45)),
        Figure("idle worker, processor", "%", percents),
        Figure("idle headrace worker, resident", "MB", command_mb),
    ]

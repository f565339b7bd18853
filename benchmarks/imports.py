"""``import headrace``, and the command that does least."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import psutil

from benchmarks.environments import ours
from benchmarks.harness import Figure, Goal, repeated

REPEATS = 10
PROGRAM = """
import sys, time
start = time.perf_counter()
import headrace
print(time.perf_counter() - start, flush=True)
sys.stdin.read()
"""


def import_once() -> tuple[float, float]:
    """Return the milliseconds and the megabytes of a process that has imported the package."""
    with subprocess.Popen(
        [ours().python, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        seconds = float(process.stdout.readline())
        return seconds * 1000, psutil.Process(process.pid).memory_info().rss / 1e6


def version_ms() -> float:
    """Return the milliseconds of ``headrace version``, the interpreter's start included."""
    program = Path(ours().python).with_name("headrace")
    start = time.perf_counter()
    subprocess.run([program, "version"], check=True, capture_output=True)
    return (time.perf_counter() - start) * 1000


async def run() -> list[float]:
    """Start both once."""
    return [*import_once(), version_ms()]


async def measure() -> list[Figure]:
    """Measure new processes, with the files in the system's cache."""
    times_ms, memory_mb, versions_ms = await repeated(run, repeats=REPEATS)
    return [
        Figure("import headrace", "ms", times_ms, Goal(150)),
        Figure("import headrace, resident", "MB", memory_mb),
        Figure("headrace version", "ms", versions_ms),
    ]

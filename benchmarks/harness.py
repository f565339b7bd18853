"""What the scenarios share: a server, a worker process, repeated runs, how a figure is shown."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import msgspec

from benchmarks.environments import Environment, ours
from benchmarks.workload import QUEUE, Workload
from tests.support.processes import WorkerProcess
from tests.support.redis_server import RedisServer, redis_server_path
from tests.support.until import until

REPEATS = 5
RESULTS = Path(__file__).with_name("results") / "latest.json"


class Goal(msgspec.Struct, frozen=True):
    """A figure to reach: at most so much, or at least."""

    limit: float
    is_least: bool = False

    def is_met(self, value: float) -> bool:
        """Whether ``value`` reaches it."""
        return value >= self.limit if self.is_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.is_least else '≤'} {shown(self.limit)}"


class Figure(msgspec.Struct, frozen=True):
    """One line of the table: the median of some runs, and the goal if it has one."""

    name: str
    unit: str
    runs: list[float]
    goal: Goal | None = None

    @property
    def value(self) -> float:
        """The median of the runs."""
        return statistics.median(self.runs)

    @property
    def verdict(self) -> str:
        """Met, missed, or nothing where there is no goal."""
        if self.goal is None:
            return ""
        return "met" if self.goal.is_met(self.value) else "missed"


def at_least(limit: float) -> Goal:
    """Return a goal for a rate."""
    return Goal(limit, is_least=True)


def shown(value: float) -> str:
    """Return a number with as many digits as can be believed."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value that ``percent`` of ``values`` do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


@contextmanager
def serving() -> Iterator[RedisServer]:
    """A redis-server of its own, with neither snapshots nor an append-only file."""
    with RedisServer() as server:
        yield server


StartWorker = Callable[[str, Path], WorkerProcess]
"""Starts a worker on the server of a URL; its output goes to files in a directory."""


def worker_process(url: str, directory: Path, *, name: str = "worker") -> WorkerProcess:
    """Start one worker of the workload, in the environment that a user has."""
    return WorkerProcess.module(
        "benchmarks.workload", url, directory=directory, name=name, python=ours().python
    )


@asynccontextmanager
async def working(
    server: RedisServer, load: Workload, start: StartWorker = worker_process
) -> AsyncIterator[WorkerProcess]:
    """One worker process that is registered and waits for jobs."""
    with start(server.url, server.directory) as worker:
        await until(load.app.queue(QUEUE).workers, within=20, what="the worker has registered")
        first = await load.noop.enqueue(x=0)
        # Bounded, since a worker that has died meanwhile would be waited for without end.
        await first.result(timeout=20)
        yield worker


async def repeated(
    run: Callable[[], Awaitable[Sequence[float]]], *, warm_ups: int = 1, repeats: int = REPEATS
) -> list[list[float]]:
    """Call ``run`` again and again; return the runs of each of its values, without the warm-up."""
    rows = [await run() for _ in range(warm_ups + repeats)]
    return [list(column) for column in zip(*rows[warm_ups:], strict=True)]


def machine(environment: Environment) -> dict[str, str]:
    """Return what the figures depend on, with the releases that an environment has."""
    info = Path("/proc/cpuinfo").read_text()
    models = [line.partition(": ")[2] for line in info.splitlines() if "model name" in line]
    server = subprocess.run([redis_server_path(), "--version"], capture_output=True, check=True)
    versions = environment.versions("redis", "headrace", "hiredis", "msgspec", "uvloop")
    return {
        "cpu": f"{os.cpu_count()} x {models[0] if models else platform.machine()}",
        "python": platform.python_version(),
        "redis-server": server.stdout.decode().partition("v=")[2].partition(" ")[0],
        "redis-py": versions.pop("redis"),
        **versions,
    }

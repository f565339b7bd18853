"""Measures one peer once: a fresh server for each group of cells, one worker process, one producer.

Every process is the peer's own program in its own environment, and none outlives its cell.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import psutil

from benchmarks.environments import Environment
from benchmarks.harness import serving
from benchmarks.peers.program import RECORD_VARIABLE, half_and_99, read_ran, read_started
from tests.support.processes import ROOT, WorkerProcess
from tests.support.redis_server import RedisServer

LIMIT_S = 120
"""How long one command, one drain, or the start of one worker may take."""
STOP_S = 10
LOOK_EVERY_S = 0.05
SETTLE_S = 1.0
SINGLE_COUNT = 5_000
LATENCY_COUNT = 500
FIRST_COUNT = 5
"""Jobs that show that a worker is ready."""
WARM_UP_START = 50


class CellFailed(Exception):
    """A cell has no value; the message is the reason that the notes give."""


class About(msgspec.Struct, frozen=True):
    """What an adapter says of itself."""

    name: str
    notes: str
    drain_count: int


class Cells(msgspec.Struct):
    """The values of one peer in one round by column, and why some are missing."""

    values: dict[str, float] = msgspec.field(default_factory=dict)
    reasons: list[str] = msgspec.field(default_factory=list)


class Program:
    """A peer's adapter, run by the peer's interpreter; its output goes to files in a directory."""

    def __init__(self, environment: Environment, directory: Path) -> None:
        self.environment = environment
        self.directory = directory

    def process(self, *words: str, record: str = "") -> WorkerProcess:
        """Start it with a command; leaving the ``with`` kills it."""
        module = f"benchmarks.peers.{self.environment.adapter}_peer"
        env = {"PYTHONPATH": str(ROOT), RECORD_VARIABLE: record}
        argv = (self.environment.python, "-m", module, *words)
        return WorkerProcess(*argv, directory=self.directory, name=words[0], env=env)

    def output(self, *words: str) -> str:
        """Run a command to its end and return what it printed.

        Raises:
            CellFailed: it took too long, or failed.
        """
        with self.process(*words) as process:
            is_done = happens(lambda: process.returncode is not None, LIMIT_S)
        if not is_done:
            raise CellFailed(f"`{words[0]}` took more than {LIMIT_S} s")
        if process.returncode:
            raise CellFailed(f"`{words[0]}` failed: {last_line(process.stderr)}")
        return process.stdout

    def figures(self, command: str, server: RedisServer, count: int) -> dict[str, float]:
        """Run a measuring command and return its figures."""
        printed = self.output(command, server.url, str(count))
        # A library may have printed something before.
        figures: dict[str, float] = json.loads(printed.splitlines()[-1])
        return figures

    @contextmanager
    def working(self, server: RedisServer, record: Path) -> Iterator[WorkerProcess]:
        """Run one worker; it gets SIGTERM at the end, and SIGKILL if it is there 10 s later."""
        record.mkdir()
        with self.process("worker", server.url, record=str(record)) as worker:
            children: list[psutil.Process] = []
            try:
                yield worker
            finally:
                # Some put their children into groups of their own, which a worker's kill misses.
                with suppress(psutil.NoSuchProcess):
                    children = psutil.Process(worker.pid).children(recursive=True)
                worker.term()
                happens(lambda: worker.returncode is not None, STOP_S)
                for child in children:
                    with suppress(psutil.NoSuchProcess):
                        child.kill()


def happens(condition: Callable[[], bool], within_s: float) -> bool:
    """Wait until the condition is true, and return whether it became so in time.

    It looks seldom, since what it waits for needs the same processors.
    """
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_EVERY_S)
    return True


def last_line(text: str) -> str:
    """Return the last line that says something: a traceback's error."""
    # A traceback of several errors is framed with lines that have no letters.
    lines = [line for line in text.splitlines() if any(letter.isalpha() for letter in line)]
    return lines[-1].strip(" |") if lines else "it said nothing"


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process and of what it has started."""
    total = 0
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for one in (process, *process.children(recursive=True)):
            # A child may end at any time.
            with suppress(psutil.NoSuchProcess):
                total += one.memory_info().rss
    return total / 1e6


def server_work(server: RedisServer) -> tuple[float, float]:
    """Return how many commands the server has run, and its processor time in microseconds.

    The count holds those that a script or a function runs and the call of the script itself, as
    `INFO commandstats` does; its times would count them twice, the processor's do not.
    """
    with server.client() as client:
        info = client.info()
    used_s = info["used_cpu_user"] + info["used_cpu_sys"]
    return info["total_commands_processed"], used_s * 1e6


def awaited(worker: WorkerProcess, condition: Callable[[], bool], what: str) -> None:
    """Wait until handlers have recorded enough.

    Raises:
        CellFailed: the worker has ended, or it took too long.
    """
    happens(lambda: condition() or worker.returncode is not None, LIMIT_S)
    if not condition():
        ended = worker.returncode is not None
        why = f"ended: {last_line(worker.stderr)}" if ended else f"took more than {LIMIT_S} s"
        raise CellFailed(f"{what}: the worker {why}")


def single(program: Program, about: About) -> Iterator[dict[str, float]]:
    """Enqueue one by one."""
    with serving() as server:
        got = program.figures("single", server, SINGLE_COUNT)
        yield {
            "single_rate": got["rate"],
            "single_p99_ms": got["p99_ms"],
            "client_us": got["cpu_us"],
        }


def drain(program: Program, about: About) -> Iterator[dict[str, float]]:
    """Fill a queue in bulk, then start a worker that empties it."""
    record = program.directory / "drained"
    count = about.drain_count
    with serving() as server:
        commands, cpu_us = server_work(server)
        yield {"bulk_rate": program.figures("bulk", server, count)["rate"]}
        with program.working(server, record) as worker:
            awaited(worker, lambda: read_ran(record)[0] >= count, f"{count:,} jobs drained")
            memory_mb = resident_mb(worker.pid)
        # Read when the worker has ended, and so has written all outcomes.
        ran, seconds = read_ran(record)
        all_commands, all_cpu_us = server_work(server)
    yield {
        "drain_rate": ran / seconds,
        "loaded_mb": memory_mb,
        "commands": (all_commands - commands) / count,
        "server_us": (all_cpu_us - cpu_us) / count,
    }


def latency(program: Program, about: About) -> Iterator[dict[str, float]]:
    """Send single jobs to an idle worker, first only to start, then with their results."""
    record = program.directory / "started"

    def send(count: int) -> None:
        expected = len(read_started(record)) + count
        program.figures("start", server, count)
        awaited(worker, lambda: len(read_started(record)) >= expected, "jobs to start")

    with serving() as server, program.working(server, record) as worker:
        send(FIRST_COUNT)
        time.sleep(SETTLE_S)
        yield {"idle_mb": resident_mb(worker.pid)}
        send(WARM_UP_START + LATENCY_COUNT)
        starts = half_and_99(read_started(record)[FIRST_COUNT + WARM_UP_START :])
        yield {f"start_{name}": value for name, value in starts.items()}
        trips = program.figures("round_trip", server, LATENCY_COUNT)
        yield {f"round_trip_{name}": value for name, value in trips.items()}


def introduced(environment: Environment) -> About:
    """Return what an adapter says of itself."""
    with tempfile.TemporaryDirectory(prefix="headrace-peers-") as directory:
        return msgspec.json.decode(
            Program(environment, Path(directory)).output("about"), type=About
        )


def measured(environment: Environment, about: About) -> Cells:
    """Return what can be measured of a peer; what can't has its reason instead."""
    cells = Cells()
    with tempfile.TemporaryDirectory(prefix="headrace-peers-") as directory:
        program = Program(environment, Path(directory))
        for group in (single, drain, latency):
            try:
                for values in group(program, about):
                    cells.values |= values
            except CellFailed as error:
                cells.reasons.append(str(error))
    return cells

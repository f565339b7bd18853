"""Drain by 1, 2 and 4 processes of one ``headrace worker --processes N``: what more cores add.

Twice: with handlers that do nothing, where the queue itself is the work, and with handlers that
keep a processor busy for 200 µs each, as parsing or rendering something does.
"""

from __future__ import annotations

from benchmarks.drain import COUNT, WARM_UP, drain_s, plain
from benchmarks.environments import ours
from benchmarks.harness import Figure, repeated, serving
from benchmarks.workload import QUEUE, SLOTS, Workload
from tests.support.processes import WorkerProcess
from tests.support.until import until

PROCESSES = (1, 2, 4)
REPEATS = 3


async def rate(processes: int, *, is_busy: bool) -> float:
    """Return the jobs a second of one drain, on a new server, by workers that have warmed up."""
    with serving() as server:
        load = Workload(server.url)
        if is_busy:
            load.noop = load.busy  # what is drained
        words = (
            "benchmarks.workload:app", "--url", server.url, "--processes", str(processes),
            "--concurrency", str(SLOTS), "--log-level", "error",
        )  # fmt: skip
        async with load.app:

            async def are_there() -> bool:
                return len(await load.app.queue(QUEUE).workers()) == processes

            with WorkerProcess.module(
                "headrace", "worker", *words, directory=server.directory, python=ours().python
            ) as supervisor:
                await until(are_there, within=30, what="all workers have registered")
                await drain_s(server, load, plain(load, WARM_UP), WARM_UP)
                found = COUNT / await drain_s(server, load, plain(load, COUNT), COUNT)
                # Killed, it would leave its workers to notice that by themselves.
                supervisor.term()
                assert await supervisor.wait(30) == 0
        return found


async def measure() -> list[Figure]:
    """Measure the rates, in turns, and how many times that of one process they are."""
    cases = [(processes, is_busy) for is_busy in (False, True) for processes in PROCESSES]

    async def run() -> list[float]:
        return [await rate(processes, is_busy=is_busy) for processes, is_busy in cases]

    columns = await repeated(run, repeats=REPEATS)
    runs = dict(zip(cases, columns, strict=True))
    figures = []
    for processes, is_busy in cases:
        name = f"drain, {'200 µs' if is_busy else 'noop'}, --processes {processes}"
        figures.append(Figure(name, "jobs/s", runs[processes, is_busy]))
        if processes > 1:
            pairs = zip(runs[processes, is_busy], runs[1, is_busy], strict=True)
            figures.append(Figure(f"{name}, vs 1", "times", [many / one for many, one in pairs]))
    return figures

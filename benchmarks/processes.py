"""What a call of a process slot costs, beside other ways to call a function in a process.

    python -m benchmarks.processes    # the whole table

All contenders take turns in every run, each with processes of its own that stay warm. One caller a
process calls again as soon as it has its result. All in the development environment, where the
others are installed.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import chain

import anyio
import anyio.to_process
import loky  # type: ignore[import-untyped]  # it has no types
import msgspec
import pebble
import uvloop

from benchmarks.environments import DEVELOPMENT
from benchmarks.harness import Figure, machine, percentile, repeated, shown
from benchmarks.report import machine_line
from headrace import App
from headrace.context import Silent
from headrace.job import Claim, ClaimedJob
from headrace.json_codec import JSON
from headrace.outcome import Completed
from headrace.worker.limits import Wear, process_functions
from headrace.worker.plan import Plan, plan_of
from headrace.worker.process_slots.child import ChildSettings
from headrace.worker.process_slots.processes import Processes

STEPS = {"noop": 0, "1 ms": 20_000}
CALLS = {"noop": 500, "1 ms": 200}
SLOTS = (1, 2)
OURS = "headrace"

Call = Callable[[int], Awaitable[int]]


def work(steps: int) -> int:
    """Keep a processor busy: 20,000 steps take about a millisecond."""
    total = 0
    for step in range(steps):
        total += step
    return total


app = App("memory://")
task = app.task(executor="process")(work)


def plan(steps: int) -> Plan:
    """Return a claimed job's plan."""
    job = ClaimedJob(
        id="01HZX5J5E8Y4N5W5V0E3D2Q1RA",
        queue="default",
        task=task.name,
        payload=msgspec.json.encode({"steps": steps}),
        claim=Claim(1, "01HZX5J5E8Y4N5W5V0E3D2Q1RA/0123456789abcdef"),
        failures=0,
        stalls=0,
        created_ms=0,
        waited_ms=0,
        options=b"",
    )
    return plan_of(job, task.settings)


@asynccontextmanager
async def slots(count: int) -> AsyncIterator[Call]:
    """Process slots of a worker: arguments decoded and results encoded."""
    ready = asyncio.Semaphore(0)
    processes = Processes(
        count,
        process_functions(app),
        settings=ChildSettings(parent=os.getpid(), codec=pickle.dumps(JSON)),
        wear=Wear(),
        offer=ready.release,
        emit=lambda event: print(event, file=sys.stderr),
    )
    plans = {steps: plan(steps) for steps in STEPS.values()}

    async def call(steps: int) -> int:
        outcome = await processes.run(plans[steps], Silent(), is_offered=False)
        assert isinstance(outcome, Completed)
        return msgspec.json.decode(outcome.result, type=int)

    async with anyio.create_task_group() as group:
        group.start_soon(processes.serve)
        for _ in range(count):
            await ready.acquire()
        yield call
        processes.close()


@asynccontextmanager
async def anyio_workers(count: int) -> AsyncIterator[Call]:
    """anyio.to_process: a pipe to a subprocess for each."""
    limiter = anyio.CapacityLimiter(count)

    async def call(steps: int) -> int:
        return await anyio.to_process.run_sync(work, steps, limiter=limiter)

    yield call


@asynccontextmanager
async def loky_pool(count: int) -> AsyncIterator[Call]:
    """loky: the standard library's executor, made robust."""
    with loky.ProcessPoolExecutor(count) as pool:
        yield lambda steps: asyncio.wrap_future(pool.submit(work, steps))


@asynccontextmanager
async def pebble_pool(count: int) -> AsyncIterator[Call]:
    """pebble: a pool whose tasks can be cancelled and timed out."""
    with pebble.ProcessPool(count, context=multiprocessing.get_context("spawn")) as pool:
        yield lambda steps: asyncio.wrap_future(pool.schedule(work, [steps]))


@asynccontextmanager
async def executors(count: int) -> AsyncIterator[Call]:
    """concurrent.futures: an executor of one process each, since one death breaks a whole one."""
    context = multiprocessing.get_context("spawn")
    idle: asyncio.Queue[ProcessPoolExecutor] = asyncio.Queue()
    with (
        ProcessPoolExecutor(1, mp_context=context) as first,
        ProcessPoolExecutor(1, mp_context=context) as second,
    ):
        for executor in (first, second)[:count]:
            idle.put_nowait(executor)

        async def call(steps: int) -> int:
            executor = await idle.get()
            try:
                return await asyncio.wrap_future(executor.submit(work, steps))
            finally:
                idle.put_nowait(executor)

        yield call


CONTENDERS: dict[str, Callable[[int], AbstractAsyncContextManager[Call]]] = {
    OURS: slots,
    "concurrent.futures": executors,
    "anyio.to_process": anyio_workers,
    "loky": loky_pool,
    "pebble": pebble_pool,
}

Case = tuple[str, str, int]
"""Contender, load, processes."""


class Result(msgspec.Struct, frozen=True):
    """What some runs of a case gave."""

    rates: list[float]
    p50s_ms: list[float]
    p99s_ms: list[float]
    cpu_us: list[float]

    @property
    def rate(self) -> float:
        """Median calls a second."""
        return statistics.median(self.rates)


async def one_case(call: Call, load: str, callers: int) -> list[float]:
    """Return calls/s, the ms that half and 99 % of the calls keep to, the caller's CPU in µs."""
    times_ms: list[float] = []

    async def caller() -> None:
        for _ in range(CALLS[load]):
            start = time.perf_counter()
            await call(STEPS[load])
            times_ms.append((time.perf_counter() - start) * 1000)

    start, cpu_start = time.perf_counter(), time.process_time()
    async with anyio.create_task_group() as group:
        for _ in range(callers):
            group.start_soon(caller)
    calls = callers * CALLS[load]
    rate = calls / (time.perf_counter() - start)
    cpu_us = (time.process_time() - cpu_start) / calls * 1e6
    return [rate, percentile(times_ms, 50), percentile(times_ms, 99), cpu_us]


async def compare() -> dict[Case, Result]:
    """Run all cases in turn, again and again."""
    async with AsyncExitStack() as stack:
        cases: dict[Case, Callable[[], Awaitable[list[float]]]] = {}
        for name, contender in CONTENDERS.items():
            for count in SLOTS:
                call = await stack.enter_async_context(contender(count))
                for load in STEPS:
                    cases[name, load, count] = partial(one_case, call, load, count)

        async def run() -> list[float]:
            return list(chain.from_iterable([await case() for case in cases.values()]))

        columns = await repeated(run)
    return {
        case: Result(*columns[4 * number : 4 * number + 4]) for number, case in enumerate(cases)
    }


async def measure() -> list[Figure]:
    """Measure the slots alone in absolute figures, and against the best of the others."""
    results = await compare()
    figures = []
    for load in STEPS:
        for count in SLOTS:
            ours = results[OURS, load, count]
            others = [results[name, load, count] for name in CONTENDERS if name != OURS]
            best = max(others, key=lambda other: other.rate)
            what = f"process slots, {load}, {count}"
            ratios = [a / b for a, b in zip(ours.rates, best.rates, strict=True)]
            figures += [
                Figure(what, "calls/s", ours.rates),
                Figure(f"{what}, p50", "ms", ours.p50s_ms),
                Figure(f"{what}, p99", "ms", ours.p99s_ms),
                Figure(f"{what}, worker's CPU", "µs", ours.cpu_us),
                Figure(f"{what}, vs the best other", "times", ratios),
            ]
    return figures


async def main() -> None:
    """Print everybody's figures as a table in Markdown."""
    print(machine_line(machine(DEVELOPMENT)), end="\n\n")
    results = await compare()
    print("| load | processes | | calls/s | of ours | p50 ms | p99 ms | caller's CPU µs |")
    print("|---|---|---|---|---|---|---|---|")
    for load in STEPS:
        for count in SLOTS:
            for name in CONTENDERS:
                result = results[name, load, count]
                share = result.rate / results[OURS, load, count].rate
                cells = [load, str(count), name, shown(result.rate), f"{share:.2f}"]
                costs = (result.p50s_ms, result.p99s_ms, result.cpu_us)
                cells += [shown(statistics.median(runs)) for runs in costs]
                print("|", " | ".join(cells), "|")


if __name__ == "__main__":
    uvloop.run(main())

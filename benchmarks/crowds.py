"""How long another client waits for its calls while 50,000 jobs of a queue move as one crowd.

They are enqueued, all due at one instant, then claimed by a worker that dies, taken back from it,
and purged. Meanwhile a process of its own, the bystander, enqueues jobs to another queue, one after
another, and writes down how long each call took:

    python -m benchmarks.crowds URL    # the bystander; SIGTERM ends it
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta

import anyio
import msgspec
import uvloop

from benchmarks.growth.caller import Caller, calling
from benchmarks.growth.workload import GrowthLoad, noop
from benchmarks.harness import Figure, Goal, percentile, repeated, serving
from headrace import App
from headrace.job import ErrorInfo
from headrace.storage.limits import BATCH_LIMIT
from tests.support.processes import WorkerProcess
from tests.support.until import until

CROWD = 50_000
DUE_IN = timedelta(seconds=5)
"""How far ahead what is due at once is put: longer than putting it takes."""

PAUSE_S = 0.001
DIED = ErrorInfo("WorkerDied", "it stopped beating")
READY = "ready"
MOVES = "enqueued", "due and claimed", "taken back", "purged"

Span = tuple[int, int]
"""From when until when, in ns of the clock that processes share."""


class Call(msgspec.Struct, frozen=True):
    """A call of the bystander: its first moment, by that clock, and its ms."""

    at_ns: int
    ms: float


async def stand_by(url: str) -> list[Call]:
    """Enqueue one job after another until SIGTERM comes, and return how long each call took."""
    app = App(url)
    task = app.task(queue="beside")(noop)
    calls: list[Call] = []

    async def enqueue() -> None:
        while True:
            at_ns = time.monotonic_ns()
            await task.enqueue(0)
            calls.append(Call(at_ns, (time.monotonic_ns() - at_ns) / 1e6))
            await anyio.sleep(PAUSE_S)

    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        async with app, anyio.create_task_group() as group:
            group.start_soon(enqueue)
            print(READY, flush=True)
            await anext(signals)
            group.cancel_scope.cancel()
    return calls


async def span_of(move: Awaitable[object]) -> Span:
    """Let the crowd make a move, and return from when until when that went."""
    began_ns = time.monotonic_ns()
    await move
    return began_ns, time.monotonic_ns()


async def moves(load: GrowthLoad, caller: Caller) -> dict[str, Span]:
    """Let the crowd make all moves, one after another, and return how each is called and went."""
    queue = load.app.queue(load.queues[0])
    due_at = datetime.now(UTC) + DUE_IN
    delayed = load.noop.options(run_at=due_at)

    async def claim() -> None:
        for _ in range(0, CROWD, BATCH_LIMIT):
            await caller.claim(BATCH_LIMIT)

    async def take_back() -> None:
        while (await queue.stats()).active:
            await caller.reap(DIED)

    async def purge() -> None:
        assert await queue.purge("queued", all_jobs=True) == CROWD

    enqueued = await span_of(load.app.enqueue_many(delayed.job(x=n) for n in range(CROWD)))
    left = due_at - datetime.now(UTC)
    assert left > timedelta(0)
    await anyio.sleep(left.total_seconds())
    return {
        "enqueued": enqueued,
        "due and claimed": await span_of(claim()),
        "taken back": await span_of(take_back()),
        "purged": await span_of(purge()),
    }


async def spans_and_calls() -> tuple[dict[str, Span], list[Call]]:
    """Return when the crowd of a new server moved, and all calls of the bystander."""
    with (
        serving() as server,
        WorkerProcess.module(
            "benchmarks.crowds", server.url, directory=server.directory, name="bystander"
        ) as bystander,
    ):
        await until(lambda: READY in bystander.stdout, within=20, what="the bystander is there")
        load = GrowthLoad(server.url)
        async with load.app, calling(load) as caller:
            spans = await moves(load, caller)
        bystander.term()
        assert await bystander.wait() == 0
        return spans, msgspec.json.decode(bystander.stdout.removeprefix(READY), type=list[Call])


async def run() -> list[float]:
    """Return 99 of 100 and the longest of the bystander's calls during each move."""
    spans, calls = await spans_and_calls()
    figures = []
    for began_ns, ended_ns in (spans[move] for move in MOVES):
        ms = [call.ms for call in calls if began_ns <= call.at_ns <= ended_ns]
        figures += [percentile(ms, 99), max(ms)]
    return figures


async def measure() -> list[Figure]:
    """Measure all moves, each time on a new server."""
    columns = iter(await repeated(run, repeats=3))
    figures = []
    for move in MOVES:
        beside = f"beside {CROWD:,} {move}"
        figures += [
            Figure(f"{beside}, p99", "ms", next(columns)),
            Figure(f"{beside}, longest", "ms", next(columns), Goal(100)),
        ]
    return figures


if __name__ == "__main__":
    print(msgspec.json.encode(uvloop.run(stand_by(sys.argv[1]))).decode())

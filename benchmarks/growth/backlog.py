"""Jobs that lie in the queue already: do they make its calls, or its drain, any slower?

Each crowd of jobs has a server of its own that lasts for all rounds. A run leaves behind as many
jobs as it found.
"""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from itertools import cycle, islice

import anyio
import redis

from benchmarks.growth.caller import Caller, calling
from benchmarks.growth.draining import RATE, drain
from benchmarks.growth.points import Place, Point, Values, take_turns
from benchmarks.growth.workers import working
from benchmarks.growth.workload import FAR_DELAYS_S, GrowthLoad
from benchmarks.harness import percentile, serving
from headrace.job import ErrorInfo, FailReason
from headrace.outcome import Failed
from tests.support.redis_server import RedisServer

LEAST = 1_000
"""Waiting jobs in every queue; the point that all others are held against has no other jobs."""
SIZES = 100_000, 1_000_000
HISTORY = 100_000
"""What a queue keeps by default."""
NO_LIMIT = 10_000_000

ENQUEUE, CLAIM, SETTLE = "enqueue, µs", "claim, µs", "settle, µs"
TOGETHER = "together, µs"
COMMANDS = "commands"
P50, P99 = "claim of 100, p50 ms", "claim of 100, p99 ms"

NOT_COUNTED = {"cmdstat_fcall", "cmdstat_info", "cmdstat_config|resetstat"}
"""Commands that are not called by the functions."""

BATCH = 100
BATCHES = 200
WARM_UP = 5_000
DRAINED = 20_000
EVENTS = 100_000
"""Fill the stream of events, which then drops its oldest."""

FAILED = Failed(
    FailReason.EXHAUSTED,
    ErrorInfo("ValueError", "bad value", "Traceback (most recent call last):\n" + "x" * 400, 1),
)

WAITING, KEPT, DELAYED, DEAD, FULL = (
    "waiting",
    "completed",
    "delayed",
    "failed",
    "history full",
)


class Crowd:
    """A server whose queue holds ``size`` jobs of one sort, and 1,000 waiting ones at least."""

    def __init__(self, server: RedisServer, load: GrowthLoad, sort: str, size: int) -> None:
        self._server = server
        self._sort = sort
        self._size = size
        self._load = load
        self._queue = self._load.app.queue(self._load.queues[0])
        self._waiting = size if sort == WAITING else LEAST
        self._kept = size if sort in (KEPT, FULL) else 0

    async def gather(self) -> None:
        """Bring the jobs in."""
        history = HISTORY if self._sort == FULL else NO_LIMIT
        await self._queue.configure(history=history, dead_letters=NO_LIMIT)
        async with calling(self._load) as caller:
            await caller.run(EVENTS // 3)
            await self._restore()
            if self._kept:
                await caller.run(self._kept)
            elif self._sort == DEAD:
                await caller.run(self._size, FAILED)
        if self._sort == DELAYED:
            delayed = cycle([self._load.noop.options(delay=s) for s in FAR_DELAYS_S])
            await self._load.enqueue(call.job(x=1) for call in islice(delayed, self._size))
        await self._restore()

    async def measure(self) -> Values:
        """Measure the calls by themselves, then a worker's drain."""
        with self._server.client() as client:
            async with calling(self._load) as caller:
                values = await calls(self._load, caller, client)
        await self._queue.pause()
        await self._restore(more=WARM_UP)
        async with working(self._server, self._load):
            await drain(self._server, self._load, WARM_UP)
            await self._restore(more=DRAINED)
            values[RATE] = await drain(self._server, self._load, DRAINED)
        await self._queue.resume()
        await self._restore()
        return values

    async def _restore(self, *, more: int = 0) -> None:
        """Delete what has completed since, and fill up what waits, with some more to be run."""
        stats = await self._queue.stats()
        if self._sort != FULL and stats.history > self._kept:
            new = self._queue.jobs("completed", limit=stats.history - self._kept)
            ids = [row.id async for row in new]
            await self._queue.purge("completed", *ids)
        await self._load.fill(max(0, self._waiting + more - stats.queued))


async def calls(load: GrowthLoad, caller: Caller, client: redis.Redis) -> Values:
    """Return what enqueue, claim and settle cost the server, and how long claims took."""
    count = BATCH * BATCHES
    values: Values = {}
    claimed, times_ms = [], []
    commands = 0

    def note(verb: str) -> None:
        nonlocal commands
        stats = client.info("commandstats")
        client.config_resetstat()
        values[verb] = stats["cmdstat_fcall"]["usec"] / count
        commands += sum(stats[name]["calls"] for name in stats if name not in NOT_COUNTED)

    client.config_resetstat()
    for _ in range(BATCHES):
        await caller.enqueue([load.noop.job(x=n) for n in range(BATCH)])
    note(ENQUEUE)
    for _ in range(BATCHES):
        start = time.perf_counter()
        claimed.append(await caller.claim(BATCH))
        times_ms.append((time.perf_counter() - start) * 1000)
    note(CLAIM)
    for jobs in claimed:
        await caller.settle(jobs)
    note(SETTLE)
    values[TOGETHER] = sum(values.values())
    values[COMMANDS] = commands / count
    values[P50] = percentile(times_ms, 50)
    values[P99] = percentile(times_ms, 99)
    return values


async def measure() -> list[Point]:
    """Gather all crowds, then measure them in turns."""
    places = [(WAITING, LEAST)]
    places += [(sort, size) for sort in (WAITING, KEPT, DELAYED, DEAD) for size in SIZES]
    places += [(FULL, HISTORY)]
    async with AsyncExitStack() as stack:
        crowds: dict[Place, Crowd] = {}
        for sort, size in places:
            server = stack.enter_context(serving())
            load = GrowthLoad(server.url)
            await stack.enter_async_context(load.app)
            crowds[sort, size] = Crowd(server, load, sort, size)
        async with anyio.create_task_group() as group:
            # This process packs the calls for one server while another works.
            for crowd in crowds.values():
                group.start_soon(crowd.gather)
        return await take_turns({place: crowd.measure for place, crowd in crowds.items()})

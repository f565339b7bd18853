"""The same jobs on more queues, by more worker processes, in more slots, and with more in them."""

from __future__ import annotations

import time
from functools import partial

from benchmarks.growth.draining import RATE, drain
from benchmarks.growth.points import Point, Values, take_turns
from benchmarks.growth.workers import working
from benchmarks.growth.workload import GrowthLoad
from benchmarks.harness import serving
from tests.support.redis_server import RedisServer

QUEUES = 1, 2, 4, 8
PROCESSES = 1, 2, 4, 8
SLOTS = 10, 30, 100, 300, 1_000
PAYLOADS = {100: 20_000, 1_000: 20_000, 10_000: 10_000, 102_400: 2_000}
"""How many jobs of each payload, by its bytes."""
WRAPPING = len('{"text":""}')

ENQUEUED_MB, DRAINED_MB = "enqueue, MB/s", "drain, MB/s"

COUNT = 40_000
WARM_UP = 5_000


async def drained(
    server: RedisServer, *, queues: int = 1, processes: int = 1, slots: int = 100
) -> Values:
    """Empty the server, and have warm workers drain jobs that are spread over the queues."""
    load = GrowthLoad(server.url, queues)
    with server.client() as client:
        client.flushall()
    async with load.app:
        await load.pause()
        await load.fill(WARM_UP)
        async with working(server, load, processes=processes, slots=slots):
            await drain(server, load, WARM_UP)
            await load.fill(COUNT)
            return {RATE: await drain(server, load, COUNT)}


async def measure_queues() -> list[Point]:
    """One worker, and the same jobs on one queue or several."""
    with serving() as server:
        return await take_turns({("", n): partial(drained, server, queues=n) for n in QUEUES})


async def measure_processes() -> list[Point]:
    """One queue, and one worker process or several."""
    with serving() as server:
        return await take_turns({("", n): partial(drained, server, processes=n) for n in PROCESSES})


async def measure_slots() -> list[Point]:
    """One queue and one worker, with a few slots or many."""
    with serving() as server:
        return await take_turns({("", n): partial(drained, server, slots=n) for n in SLOTS})


async def loaded(server: RedisServer, size: int) -> Values:
    """Enqueue jobs with payloads of ``size`` bytes, and have a warm worker drain them."""
    count = PAYLOADS[size]
    text = "x" * (size - WRAPPING)
    load = GrowthLoad(server.url)
    with server.client() as client:
        client.flushall()

    async def fill(jobs: int) -> float:
        start = time.perf_counter()
        await load.enqueue(load.measure_text.job(text=text) for _ in range(jobs))
        return jobs / (time.perf_counter() - start)

    async with load.app:
        await load.pause()
        await fill(count // 10)
        async with working(server, load):
            await drain(server, load, count // 10)
            enqueued = await fill(count)
            ended = await drain(server, load, count)
    return {
        "enqueue, jobs/s": enqueued,
        ENQUEUED_MB: enqueued * size / 1e6,
        RATE: ended,
        DRAINED_MB: ended * size / 1e6,
    }


async def measure_payloads() -> list[Point]:
    """Jobs with a little in them or much."""
    with serving() as server:
        return await take_turns({("", size): partial(loaded, server, size) for size in PAYLOADS})

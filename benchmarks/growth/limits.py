"""Limits and turns: is a drain any slower with more keys, or with more jobs that are held up?"""

from __future__ import annotations

from functools import partial

from benchmarks.growth.draining import RATE, drain
from benchmarks.growth.points import Point, Values, take_turns
from benchmarks.growth.workers import working
from benchmarks.growth.workload import GrowthLoad
from benchmarks.harness import serving
from tests.support.redis_server import RedisServer

KEYS = 1, 1_000, 100_000
IN_LINE = 1_000, 1_000_000
COUNT = 40_000
WARM_UP = 5_000
MANY = 1_000


async def drained(
    server: RedisServer, *, keys: int = MANY, in_line: int = 0, is_fair: bool = False
) -> Values:
    """Empty the server, and have a warm worker drain jobs of so many keys, past those in line."""
    load = GrowthLoad(server.url)
    task = load.in_turns if is_fair else load.limited
    with server.client() as client:
        client.flushall()

    async def fill(count: int) -> None:
        await load.enqueue(task.job(x=n, key=n % keys) for n in range(count))

    async with load.app:
        await load.pause()
        await load.enqueue(load.closed.job(x=n) for n in range(in_line))
        await fill(WARM_UP)
        async with working(server, load):
            await drain(server, load, WARM_UP)
            count = max(COUNT, keys)
            await fill(count)
            return {RATE: await drain(server, load, count)}


async def measure_keys() -> list[Point]:
    """The same jobs of one key, or of many."""
    with serving() as server:
        return await take_turns({("", n): partial(drained, server, keys=n) for n in KEYS})


async def measure_turns() -> list[Point]:
    """The same jobs, of which one key has all the turns, or many take them."""
    with serving() as server:
        return await take_turns(
            {("", n): partial(drained, server, keys=n, is_fair=True) for n in KEYS}
        )


async def measure_lines() -> list[Point]:
    """The same jobs besides a few in the line of another gate, or many."""
    with serving() as server:
        return await take_turns({("", n): partial(drained, server, in_line=n) for n in IN_LINE})

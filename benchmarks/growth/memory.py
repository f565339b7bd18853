"""What a job weighs in Redis by the state it is in: the growth of ``used_memory`` over many."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from itertools import cycle, islice

import redis

from benchmarks.growth.caller import calling
from benchmarks.growth.points import Place, Point, Values, take_turns
from benchmarks.growth.workload import FAR_DELAYS_S, GrowthLoad
from benchmarks.harness import serving
from headrace import Job
from headrace.storage.limits import BATCH_LIMIT
from headrace.storage.redis import keys
from tests.support.redis_server import RedisServer
from tests.support.until import until

COUNT = 100_000
EVENTS = 5_000 * 20
"""What the stream of events holds by default."""
WEIGHT = "B each"

WAITING, DELAYED, COMPLETED, STREAM = "waiting", "delayed", "completed", "events"
TEXT_BYTES = 189
"""Makes a payload of 200 bytes, which has a key of its own; without text it is ``{"x":1}``."""
SMALL, LARGE = len('{"x":1}'), TEXT_BYTES + len('{"text":""}')


async def used_bytes(client: redis.Redis) -> int:
    """Return the memory in use, once no table of keys is being moved to a larger one."""

    def is_moved() -> bool:
        return "rehashing target" not in str(client.execute_command("DEBUG", "HTSTATS", 0))

    await until(is_moved, within=60, what="the tables of keys have grown")
    return int(client.info("memory")["used_memory"])


def jobs_of(load: GrowthLoad, size: int, *, is_delayed: bool) -> Iterator[Job]:
    """Yield the jobs that are weighed."""
    delays = cycle(FAR_DELAYS_S) if is_delayed else cycle([0.0])
    for delay in islice(delays, COUNT):
        if size == SMALL:
            yield load.noop.options(delay=delay).job(x=1)
        else:
            yield load.measure_text.options(delay=delay).job(text="x" * TEXT_BYTES)


async def weigh(server: RedisServer, state: str, size: int) -> Values:
    """Bring jobs into a state on an empty server, and return what each adds to its memory.

    The stream of events is as short as it can be: it is bounded, and weighed by itself.
    """
    load = GrowthLoad(server.url)
    with server.client() as client:
        client.flushall()
        async with load.app, calling(load) as caller:
            await load.app.queue(load.queues[0]).configure(events=1)
            await caller.run(BATCH_LIMIT)
            before = await used_bytes(client)
            await load.enqueue(jobs_of(load, size, is_delayed=state == DELAYED))
            if state == COMPLETED:
                for _ in range(0, COUNT, BATCH_LIMIT):
                    await caller.settle(await caller.claim(BATCH_LIMIT))
            return {WEIGHT: (await used_bytes(client) - before) / COUNT}


async def weigh_stream(server: RedisServer) -> Values:
    """Fill the stream of events, and return what each weighs in it."""
    load = GrowthLoad(server.url)
    with server.client() as client:
        client.flushall()
        async with load.app, calling(load) as caller:
            await caller.run(EVENTS // 3 + BATCH_LIMIT)
        key = keys.root(load.app.tenant, load.queues[0]) + ":events"
        return {WEIGHT: client.memory_usage(key, samples=0) / EVENTS}


async def measure() -> list[Point]:
    """Weigh both sizes of payload in each state, and the events."""
    with serving() as server:
        runs: dict[Place, Callable[[], Awaitable[Values]]] = {
            (state, size): partial(weigh, server, state, size)
            for state in (WAITING, DELAYED, COMPLETED)
            for size in (SMALL, LARGE)
        }
        runs[STREAM, EVENTS] = partial(weigh_stream, server)
        return await take_turns(runs)

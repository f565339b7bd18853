"""How long one call holds up all others where jobs have limits, by the number of keys.

That is the processor time of the server's main thread, or of the process whose one writer has the
database: what else runs on the machine does not count.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product

from benchmarks.growth.caller import Caller, calling
from benchmarks.growth.points import Place, Point, Values, take_turns
from benchmarks.growth.workload import GrowthLoad
from benchmarks.harness import serving
from headrace.job import ErrorInfo
from headrace.storage.limits import BATCH_LIMIT, MOVED_A_CALL

NO_KEYS, KEYS = 0, 500
IN_LINE = 10_000
REPAIRED = 100_000
KEYS_REPAIRED = 1, 1_000, 100_000
LONGEST = "longest call, ms"
DIED = ErrorInfo("WorkerDied", "it stopped beating")


class Stand:
    """A queue on an empty storage, and what its calls take of who serves it.

    Args:
        load: the app, and its tasks.
        caller: who calls.
        spent_s: the processor time that the calls of this storage have taken so far.
    """

    def __init__(self, load: GrowthLoad, caller: Caller, spent_s: Callable[[], float]) -> None:
        self.caller = caller
        self.queue = load.app.queue(load.queues[0])
        self._limit = f"{load.limited.name}:key"
        self._load = load
        self._spent_s = spent_s

    async def fill(self, count: int, keys: int) -> None:
        """Enqueue so many jobs, of one place a key; of none without a limit."""
        if keys:
            await self.set_limit(1)
            jobs = (self._load.limited.job(x=n, key=n % keys) for n in range(count))
        else:
            jobs = (self._load.noop.job(x=n) for n in range(count))
        await self._load.enqueue(jobs)

    async def set_limit(self, concurrency: int) -> None:
        """Let so many jobs of a key run at once."""
        await self.queue.set_limit(self._limit, concurrency=concurrency)

    async def ms(self, call: Awaitable[object]) -> float:
        """Return what a call takes."""
        before_s = self._spent_s()
        await call
        return (self._spent_s() - before_s) * 1_000


async def settle(stand: Stand, keys: int) -> float:
    """Complete as many jobs as a worker does at once; each may let the next of its key in."""
    await stand.fill(2 * BATCH_LIMIT, keys)
    return await stand.ms(stand.caller.settle(await stand.caller.claim(MOVED_A_CALL)))


async def reap(stand: Stand, keys: int) -> float:
    """Take back what a dead worker held, as far as one call does."""
    await stand.fill(2 * BATCH_LIMIT, keys)
    await stand.caller.claim(BATCH_LIMIT)
    return await stand.ms(stand.caller.reap(DIED))


async def purge(stand: Stand, keys: int) -> float:
    """Delete as many ready jobs as one call does, each of which may have a place."""
    await stand.fill(2 * BATCH_LIMIT, keys)
    ids = [row.id async for row in stand.queue.jobs("queued", limit=MOVED_A_CALL)]
    return await stand.ms(stand.queue.purge("queued", *ids))


async def set_limit(stand: Stand, keys: int) -> float:
    """Give all of 10,000 jobs in line room at once."""
    await stand.fill(IN_LINE + keys, keys)
    return await stand.ms(stand.set_limit(IN_LINE))


async def repair(stand: Stand, keys: int) -> float:
    """Repair a queue of 100,000 jobs, and return the longest call behind the first."""
    await stand.fill(REPAIRED, keys)
    longest_ms, caller = 0.0, stand.caller
    await caller.repair()
    while caller.repaired:
        longest_ms = max(longest_ms, await stand.ms(caller.repair()))
    return longest_ms


CALLS = {
    "settle": (settle, (NO_KEYS, KEYS)),
    "reap": (reap, (NO_KEYS, KEYS)),
    "purge": (purge, (NO_KEYS, KEYS)),
    "set_limit": (set_limit, (1, IN_LINE)),
    "repair": (repair, KEYS_REPAIRED),
}


@contextmanager
def on_redis() -> Iterator[tuple[str, Callable[[], float]]]:
    """A server, and its main thread's processor time."""
    with serving() as server, server.client() as client:

        def spent_s() -> float:
            cpu = client.info("cpu")
            return float(cpu["used_cpu_user_main_thread"] + cpu["used_cpu_sys_main_thread"])

        yield server.url, spent_s


@contextmanager
def on_file() -> Iterator[tuple[str, Callable[[], float]]]:
    """A directory, and this process's processor time."""
    with tempfile.TemporaryDirectory() as directory:
        yield f"file://{directory}/data?sync=normal", time.process_time


STORAGES = {"Redis": on_redis, "file://": on_file}


async def measured(name: str, storage: str, keys: int) -> Values:
    """Fill an empty storage, and measure a call on it."""
    run, _ = CALLS[name]
    with STORAGES[storage]() as (url, spent_s):
        load = GrowthLoad(url)
        async with load.app, calling(load) as caller:
            return {LONGEST: await run(Stand(load, caller, spent_s), keys)}


async def measure() -> list[Point]:
    """Measure each call on both storages, by keys; 0: jobs without a limit."""
    runs: dict[Place, Callable[[], Awaitable[Values]]] = {}
    for name, (_, sizes) in CALLS.items():
        for storage, keys in product(STORAGES, sizes):
            runs[f"keys, {name}, {storage}", keys] = partial(measured, name, storage, keys)
    return await take_turns(runs)

"""Why a job does not run: does the answer take longer beside more workers, jobs and strikes?

Each sort of answer is asked for where it costs most: in a large queue what is looked for is not
found within the looks that there may be. On Redis it is the server's own time, by its slow log; on
SQLite that of the whole call, in memory.
"""

from __future__ import annotations

import secrets
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import msgspec
import redis

from benchmarks.growth.points import Place, Point, Values, take_turns
from benchmarks.harness import serving
from headrace.fairness import FAIR_LIMIT
from headrace.limit import Gate, Terms, gates_text
from headrace.storage import JobRequest, Storage, Update, open_storage
from headrace.storage.limits import BATCH_LIMIT
from headrace.strike import Strike
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
)

ASKED = 30
"""How often each question is asked in a run."""
LEASE_MS = 24 * 3_600_000
TASKS = {f"shop.orders.task_{n}": "default" for n in range(30)}
"""What each worker says that it knows."""
ONE_A_DAY = Terms(0, 1, 24 * 3_600_000, 1)
STRUCK = "struck"
"""The task that one of the strikes keeps."""
NEAR = 150
"""A place among the first, where those that were cancelled are told from the others."""

SORTS = {
    "a limit's few": "few",
    "a limit's many": "many",
    "rate": "rate",
    "turn": "turn-2",
    "behind": "w{middle}",
    "behind a few": f"w{NEAR}",
    "lane": "lane",
    "struck": STRUCK,
    "runs": "runs",
}
"""What is asked for, and of which job."""


class Crowd(msgspec.Struct, frozen=True, kw_only=True):
    """What is in a queue beside the jobs that are asked for.

    Attributes:
        workers: how many are alive.
        active: how many jobs run on them, together.
        waiting: how many are ready.
        are_older: whether these came before the queue's first limit.
        strikes: how many there are.
    """

    workers: int = 10
    active: int = 100
    waiting: int = 1_000
    are_older: bool = False
    strikes: int = 1


OLDER: Place = ("in an older line", 1_000_000)
CROWDS: dict[Place, Crowd] = {
    ("workers", 10): Crowd(),
    ("workers", 120): Crowd(workers=120),
    ("workers", 1_000): Crowd(workers=1_000, active=1_000),
    ("active", 10_000): Crowd(active=10_000),
    ("in line", 1_000_000): Crowd(waiting=1_000_000),
    OLDER: Crowd(waiting=1_000_000, are_older=True),
    ("strikes", 100): Crowd(strikes=100),
    ("in line, and all else", 1_000_000): Crowd(
        workers=120, active=10_000, waiting=1_000_000, are_older=True, strikes=100
    ),
}


def gates(*named: tuple[str, str, Terms | None]) -> str:
    """Return the gates of a job, by limit, key and terms."""
    return gates_text([Gate(*words) for words in named])


class Scene:
    """A queue on a storage, with a crowd and a job of each sort."""

    def __init__(self, storage: Storage, crowd: Crowd) -> None:
        self.storage = storage
        self._crowd = crowd
        self._client = ContractClient(storage)
        self._workers = [
            ContractIncarnation(storage, f"worker-{n:04}", lease_ms=LEASE_MS, tasks=TASKS)
            for n in range(crowd.workers)
        ]
        self.asked = {
            name: job_id.format(middle=crowd.waiting // 2) for name, job_id in SORTS.items()
        }

    async def set(self) -> None:
        """Bring all into their places."""
        for worker in self._workers:
            await worker.register()
        if self._crowd.are_older:
            await self._wait()
        await self._run()
        await self._put_in_line()
        if not self._crowd.are_older:
            await self._wait()
        await self._client.enqueue_all([self._fair("turn-1"), self._fair("turn-2")])
        await self.storage.cancel(QUEUE, ["w0"])
        await self.storage.pause(QUEUE)

    async def why(self, job_id: str) -> None:
        """Ask for one of the jobs."""
        assert await self.storage.why(QUEUE, job_id) is not None

    async def _wait(self) -> None:
        await self._client.enqueue_all(a_job(f"w{n}") for n in range(self._crowd.waiting))

    async def _run(self) -> None:
        """Have jobs run, spread over the workers; two of them have a limit for themselves."""
        await self._client.enqueue_all(self._to_run())
        for n, worker in enumerate(self._workers):
            left = self._crowd.active * (n + 1) // len(self._workers)
            for start in range(self._crowd.active * n // len(self._workers), left, BATCH_LIMIT):
                await worker.claim(min(BATCH_LIMIT, left - start))

    def _to_run(self) -> Iterator[JobRequest]:
        count = self._crowd.active
        for n in range(count):
            key = "few" if n in (count // 3, count // 2) else f"{n}"
            its = gates(("stripe", key, Terms(2)), ("pool", "", Terms(count)))
            yield a_job("runs" if n == 0 else f"a{n}", gates=its, priority=9)

    async def _put_in_line(self) -> None:
        await self._client.enqueue_all(
            [
                a_job("few", gates=gates(("stripe", "few", Terms(2)))),
                a_job("many", gates=gates(("pool", "", Terms(self._crowd.active)))),
                a_job("rated", gates=gates(("daily", "", ONE_A_DAY)), priority=9),
                a_job("rate", gates=gates(("daily", "", ONE_A_DAY))),
                a_job("lane", lane="gpu"),
                a_job("runs", update=Update()),
            ]
        )
        await self._workers[0].claim(1)
        for n in range(self._crowd.strikes):
            where = f'{{"customer":"{n}"}}' if n else ""
            await self.storage.strike(QUEUE, Strike(id=f"strike-{n}", task=STRUCK, where=where))
        struck = JobRequest(id=STRUCK, queue=QUEUE, task=STRUCK, payload=b"[]", priority=9)
        await self._client.enqueue_all([struck])
        await self._workers[0].claim(1)

    def _fair(self, job_id: str) -> JobRequest:
        return a_job(job_id, gates=gates((FAIR_LIMIT, "key", None)))


@asynccontextmanager
async def setting(url: str, crowd: Crowd) -> AsyncIterator[Scene]:
    """Have a crowd in the queue of a storage."""
    storage = open_storage(url)
    try:
        scene = Scene(storage, crowd)
        await scene.set()
        yield scene
    finally:
        await storage.aclose()


async def on_redis(scene: Scene, client: redis.Redis) -> Values:
    """Return the median of the server's time for each sort of answer, in ms."""
    values: Values = {}
    for name, job_id in scene.asked.items():
        client.config_set("slowlog-log-slower-than", 1)
        client.slowlog_reset()
        for _ in range(ASKED):
            await scene.why(job_id)
        client.config_set("slowlog-log-slower-than", -1)
        values[name] = statistics.median(
            entry["duration"] / 1000
            for entry in client.slowlog_get(2 * ASKED)
            if entry["command"].startswith(b"FCALL")
        )
    return values


async def on_sqlite(scene: Scene) -> Values:
    """Return the median time of the whole call for each sort of answer, in ms."""
    values: Values = {}
    for name, job_id in scene.asked.items():
        times_ms = []
        for _ in range(ASKED):
            start = time.perf_counter()
            await scene.why(job_id)
            times_ms.append((time.perf_counter() - start) * 1000)
        values[name] = statistics.median(times_ms)
    return values


async def measure() -> list[Point]:
    """Bring each crowd to a server of its own, then ask in turns."""
    async with AsyncExitStack() as stack:
        runs = {}
        for place, crowd in CROWDS.items():
            server = stack.enter_context(serving())
            client = stack.enter_context(server.client())
            scene = await stack.enter_async_context(setting(server.url, crowd))
            runs[place] = partial(on_redis, scene, client)
        return await take_turns(runs)


async def measure_embedded() -> list[Point]:
    """The same of crowds in memory; there is no older line."""
    async with AsyncExitStack() as stack:
        runs = {}
        for place, crowd in CROWDS.items():
            if place != OLDER:
                url = f"memory://why-{secrets.token_hex(6)}"
                scene = await stack.enter_async_context(setting(url, crowd))
                runs[place] = partial(on_sqlite, scene)
        return await take_turns(runs)

"""The server's time for a job: what its three calls take of it, in batches of 100."""

from __future__ import annotations

from benchmarks.harness import Figure, Goal, repeated, serving
from benchmarks.workload import QUEUE, Workload
from headrace.job import DEFAULT_KEEP_MS, DEFAULT_LANE
from headrace.outcome import Completed
from headrace.storage.base import Storage
from headrace.storage.values import CallId, ClaimReply, Settlement, WorkerInfo
from tests.support.redis_server import RedisServer

BATCH = 100
BATCHES = 200
INCARNATION = "01BENCHMARK"
RESULT = Completed(b"1", DEFAULT_KEEP_MS, DEFAULT_KEEP_MS)


class Calls:
    """The three verbs, called as one producer and one worker would."""

    def __init__(self, load: Workload, storage: Storage) -> None:
        self._load = load
        self._storage = storage
        self._replies: list[ClaimReply] = []

    async def register(self) -> None:
        """Make the incarnation known."""
        info = WorkerInfo(
            incarnation=INCARNATION,
            name="bench",
            host="localhost",
            pid=1,
            version="0",
            concurrency=BATCH,
            lease_ms=60_000,
            registered_ms=0,
        )
        await self._storage.register(QUEUE, info)

    async def enqueue(self, number: int) -> None:
        """Enqueue one batch."""
        jobs = [self._load.noop.job(x=n) for n in range(BATCH)]
        await self._storage.enqueue(QUEUE, jobs, call=CallId("bench", number))

    async def claim(self, number: int) -> None:
        """Claim one batch."""
        reply = await self._storage.claim(
            QUEUE,
            call=CallId(INCARNATION, number),
            nonce=f"{INCARNATION}/{number:016}",
            slots={DEFAULT_LANE: BATCH},
        )
        assert len(reply.jobs) == BATCH
        self._replies.append(reply)

    async def settle(self, number: int) -> None:
        """Record the outcomes of one batch."""
        batch = [Settlement(j.id, j.claim, 0, RESULT) for j in self._replies[number - 1].jobs]
        verdicts = await self._storage.settle(QUEUE, batch, call=CallId(INCARNATION, number))
        assert verdicts == [True] * BATCH


async def run(server: RedisServer) -> list[float]:
    """Return the microseconds per job of enqueue, claim and settle, and their sum."""
    load = Workload(server.url)
    storage = load.app.open_storage()
    calls = Calls(load, storage)
    spent_us = []
    try:
        with server.client() as client:
            client.flushall()
            await calls.register()
            for verb in (calls.enqueue, calls.claim, calls.settle):
                client.config_resetstat()
                for number in range(1, BATCHES + 1):
                    await verb(number)
                stats = client.info("commandstats")
                spent_us.append(stats["cmdstat_fcall"]["usec"] / (BATCH * BATCHES))
    finally:
        await storage.aclose()
    return [*spent_us, sum(spent_us)]


async def measure() -> list[Figure]:
    """Measure each verb by itself."""
    with serving() as server:
        enqueue, claim, settle, total = await repeated(lambda: run(server))
    return [
        Figure("Redis time a job", "µs", total, Goal(18)),
        Figure("Redis time a job: enqueue", "µs", enqueue),
        Figure("Redis time a job: claim", "µs", claim),
        Figure("Redis time a job: settle", "µs", settle),
    ]

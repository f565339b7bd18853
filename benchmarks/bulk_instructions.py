"""The server's instructions for a job that comes with hundreds of others of its task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from benchmarks.callgrind import Meter
from benchmarks.harness import Goal
from headrace.job import new_job_id
from headrace.request import JobRequest
from headrace.storage.base import Storage
from headrace.storage.connect import open_storage
from headrace.storage.values import CallId
from tests.support.redis_server import RedisServer

BATCH, BATCHES, WARM_UP = 500, 50, 2
"""As many calls as the server makes between two pieces of collecting garbage: with fewer it is by
chance whether a piece is among them, which is 4 % of what duplicates take."""
PAYLOADS = (9, 85)
"""Bytes: one that lies in the record, and one that has a key of its own."""
HAS_STAYING_IDS = "replaces_ended" in JobRequest.__struct_fields__
"""Whether the code that is counted knows ids of which any record stands."""

BULK_GOALS = {
    f"bulk, new ids, {PAYLOADS[0]} B": Goal(23_000),
    f"bulk, own ids, {PAYLOADS[0]} B": Goal(24_000),
}

_numbers = count(1)


def _own_id() -> str:
    return f"order:{next(_numbers):012}"


class BulkCounts:
    """Counts calls of `enqueue` with `BATCH` jobs of one task each.

    Args:
        server: what is called; it is emptied before each count, so that its table of keys grows as
            often in all of them.
        meter: counts its instructions.
    """

    def __init__(self, server: RedisServer, meter: Meter) -> None:
        self._server = server
        self._meter = meter

    async def run(self) -> dict[str, float]:
        """Return the instructions a job, by what sort of ids and payload it had."""
        await self._meter.calibrate()
        storage = open_storage(self._server.url)
        try:
            counts = {}
            for size in PAYLOADS:
                for sort, batches in _sorts(b"." * size).items():
                    queue = f"{sort}-{size}".replace(" ", "-")
                    counts[f"bulk, {sort}, {size} B"] = await self._count(storage, queue, batches)
            return counts
        finally:
            await storage.aclose()

    async def _count(
        self, storage: Storage, queue: str, batches: Sequence[list[JobRequest]]
    ) -> float:
        with self._server.client() as client:
            client.flushall()
        for number, jobs in enumerate(batches):
            if number == WARM_UP:
                self._meter.begin()
            await storage.enqueue(queue, jobs, call=CallId("bench", number + 1))
        return self._meter.end() / (BATCH * BATCHES)


def _sorts(payload: bytes) -> dict[str, Sequence[list[JobRequest]]]:
    def batches(
        new_id: Callable[[], str], number: int = WARM_UP + BATCHES, **options: Any
    ) -> list[list[JobRequest]]:
        def job() -> JobRequest:
            return JobRequest(new_id(), "", "noop", payload, is_plain=True, **options)

        return [[job() for _ in range(BATCH)] for _ in range(number)]

    sorts: dict[str, Sequence[list[JobRequest]]] = {
        "new ids": batches(new_job_id, is_new_id=True),
        "own ids": batches(_own_id),
        "duplicates": batches(_own_id, 1) * (WARM_UP + BATCHES),
    }
    if HAS_STAYING_IDS:
        sorts["own ids that stay"] = batches(_own_id, replaces_ended=False)
    return sorts

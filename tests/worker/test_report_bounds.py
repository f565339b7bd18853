"""How much one report carries: pieces of output are the storage's work as jobs are."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import cast

from headrace.storage.base import Consumer
from headrace.storage.limits import PIECES_LIMIT
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.storage.values import Report
from headrace.testing.contract.steps import QUEUE, ContractClient, ContractIncarnation, a_job
from headrace.worker.reports import Reports


class Counted:
    """Passes reports on, and counts what each call holds."""

    def __init__(self, storage: SqliteStorage) -> None:
        self._storage = storage
        self.pieces: list[int] = []

    async def report(self, queue: str, reports: Sequence[Report]) -> list[bool]:
        self.pieces.append(sum(len(report.chunks) for report in reports))
        return await self._storage.report(queue, reports)


async def test_a_call_holds_at_most_1000_pieces_of_however_many_attempts() -> None:
    storage = SqliteStorage(f"memory://test-{secrets.token_hex(6)}").for_tenant("acme")
    counted = Counted(storage)
    worker = await ContractIncarnation(storage, "w1").register()
    await ContractClient(storage).enqueue(*(a_job(name) for name in "abc"))
    reports = Reports(cast(Consumer, counted), queue=QUEUE)
    jobs = await worker.claim()
    for n in range(400):
        for job in jobs:
            reports.emit(job, b"%d" % n)
    await reports.report_once()
    assert max(counted.pieces) == PIECES_LIMIT
    assert sum(counted.pieces) == 1_200
    for job in jobs:
        seen, cursor = [], ""
        while chunks := (page := await storage.output(QUEUE, job.id, after=cursor)).chunks:
            seen += chunks
            cursor = page.cursor
        assert seen == [b"%d" % n for n in range(400)]
    await storage.aclose()

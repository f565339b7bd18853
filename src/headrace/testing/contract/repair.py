"""Contract of ``repair``: a queue in order stays as it is, byte by byte, whatever its jobs do."""

from __future__ import annotations

import pytest

from headrace.storage import Repaired, Storage
from headrace.testing.contract.fixtures import Contract, Dump
from headrace.testing.contract.steps import (
    EACH_STATE,
    MINUTE_MS,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    completed,
)

MANY = 1_300
"""More jobs than a call looks at."""


async def repair_all(storage: Storage, *, is_full: bool) -> int:
    """Repair to the end and return how many things were put right."""
    done = await storage.repair(QUEUE, is_full=is_full)
    mended = done.mended
    while done.cursor:
        done = await storage.repair(QUEUE, cursor=done.cursor)
        mended += done.mended
    return mended


async def fill(client: ContractClient, **options: int) -> None:
    """Store more jobs than a call looks at, in two lanes and two tiers."""
    for first in range(0, MANY, 500):
        jobs = [
            a_job(
                f"{n}",
                lane="process" if n % 3 == 0 else "default",
                priority=9 if n % 2 else 5,
                payload=b"." * 100,
                **options,
            )
            for n in range(first, min(first + 500, MANY))
        ]
        await client.enqueue(*jobs)


class RepairContract(Contract):
    """Tests of ``repair``."""

    @pytest.mark.parametrize("is_full", [False, True])
    async def test_repair_leaves_a_queue_in_order_as_it_is(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        dump: Dump,
        *,
        is_full: bool,
    ) -> None:
        for state in EACH_STATE:
            await bring(state, client, worker, f"{state}", payload=b"." * 300)
        await client.enqueue(a_job("left over"), a_job("elsewhere", lane="process"))
        await storage.cancel(QUEUE, ["left over"])
        before = await dump()
        assert await repair_all(storage, is_full=is_full) == 0
        assert await dump() == before

    @pytest.mark.parametrize("options", [{}, {"delay_ms": MINUTE_MS}], ids=["ready", "delayed"])
    @pytest.mark.parametrize("is_full", [False, True])
    async def test_repair_leaves_many_jobs_in_order_as_they_are(
        self,
        storage: Storage,
        client: ContractClient,
        dump: Dump,
        options: dict[str, int],
        *,
        is_full: bool,
    ) -> None:
        await fill(client, **options)
        before = await dump()
        assert await repair_all(storage, is_full=is_full) == 0
        assert await dump() == before

    async def test_repair_changes_no_count_while_jobs_move(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await fill(client)
        await client.enqueue(*(a_job(f"later {n}", delay_ms=MINUTE_MS) for n in range(400)))
        done = await storage.repair(QUEUE)
        moved = mended = 0
        while done.cursor:
            for job in await worker.claim(slots={"default": 5, "process": 5}):
                await worker.settle(job, completed())
                moved += 1
            await storage.cancel(QUEUE, [f"{MANY - 1 - moved}", f"later {moved}"])
            done = await storage.repair(QUEUE, cursor=done.cursor)
            mended += done.mended
        assert mended == 0  # and the counts agree with the records, as the subject's problems say

    async def test_repair_of_a_queue_that_is_not_there_does_nothing(self, storage: Storage) -> None:
        assert await storage.repair("nowhere", is_full=True) == Repaired("", 0)

"""Contract of ``repair``: a queue in order stays as it is, byte by byte, whatever its jobs do."""

from __future__ import annotations

import pytest

from headrace.storage import Repaired, Settlement, Storage, Terms
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    EACH_STATE,
    MINUTE_MS,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_gated_job,
    a_job,
    bring,
    completed,
    failed,
    retried,
)
from headrace.testing.contract.subject import Subject

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
    await client.enqueue_all(
        a_job(
            f"{n}",
            lane="process" if n % 3 == 0 else "default",
            priority=9 if n % 2 else 5,
            payload=b"." * 100,
            **options,
        )
        for n in range(MANY)
    )


async def fill_with_limits(client: ContractClient, worker: ContractIncarnation) -> None:
    """Store more jobs than a call looks at with seven keys of a limit: active, ready, in line."""
    for first in range(0, MANY, 325):
        jobs = [
            a_gated_job(f"{n}", f"{n % 7}", Terms(80)) for n in range(first, min(first + 325, MANY))
        ]
        await client.enqueue(*jobs)
        await worker.claim(70)


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

    async def test_other_calls_get_in_between_those_of_a_repair_and_nothing_is_judged_by_half(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await fill_with_limits(client, worker)
        await advance(1)
        done = await storage.repair(QUEUE, is_full=True)
        mended, calls = done.mended, 1
        while done.cursor:
            jobs = await worker.claim(9)
            outcomes = (completed(), failed(), retried(0))
            await worker.settle_all(
                *(Settlement(job.id, job.claim, 1, outcomes[n % 3]) for n, job in enumerate(jobs))
            )
            await storage.cancel(QUEUE, [f"{MANY - calls}", f"{calls * 7}"])
            await client.enqueue(a_gated_job(f"new {calls}", f"{calls % 9}", Terms(80)))
            await storage.set_limit(QUEUE, "stripe", Terms(70 + calls))
            await advance(1)
            done = await storage.repair(QUEUE, cursor=done.cursor)
            mended, calls = mended + done.mended, calls + 1
        assert (mended, calls > MANY // 500) == (0, True)

    async def test_a_repair_judges_nothing_by_a_clock_that_is_set_back(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await fill_with_limits(client, worker)
        await advance(1)
        done = await storage.repair(QUEUE, is_full=True)
        mended = done.mended
        while done.cursor:
            for job in await worker.claim(2):
                await worker.settle(job, completed())
            await advance(-100)
            done = await storage.repair(QUEUE, cursor=done.cursor)
            mended += done.mended
        assert mended == 0

    @pytest.mark.parametrize("goes_on_with", [0, 1])
    async def test_a_call_of_a_repair_that_is_repeated_counts_nothing_twice(
        self, subject: Subject, goes_on_with: int
    ) -> None:
        storage = subject.storage
        worker = await ContractIncarnation(storage, "w1").register()
        await fill_with_limits(ContractClient(storage), worker)
        await subject.advance(1)
        cursor, mended, is_first = "", 0, True
        while cursor or is_first:
            twice = [await storage.repair(QUEUE, cursor=cursor, is_full=is_first) for _ in "ab"]
            mended += sum(done.mended for done in twice)
            cursor, is_first = twice[goes_on_with].cursor, False
        assert mended == 0

    async def test_two_repairs_at_a_time_put_nothing_right_that_is(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await fill_with_limits(client, worker)
        await advance(1)
        walks = [await storage.repair(QUEUE, is_full=True) for _ in "ab"]
        mended = sum(done.mended for done in walks)
        while any(done.cursor for done in walks):
            for n, done in enumerate(walks):
                if done.cursor:
                    walks[n] = await storage.repair(QUEUE, cursor=done.cursor)
                    mended += walks[n].mended
        assert mended == 0

"""Contract of ``redrive``: a dead letter starts over."""

from __future__ import annotations

import pytest

from headrace.storage import FailReason, JobState, Storage
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    DAY_MS,
    EACH_STATE,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    completed,
    failed,
    ids,
    retried,
    state_of,
    unknown_task,
)


class RedriveContract(Contract):
    """Tests of ``redrive``."""

    @pytest.mark.parametrize("size", [10, 1000])
    async def test_a_redriven_job_is_queued_with_its_counts_and_errors_reset(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        size: int,
    ) -> None:
        await client.enqueue(a_job(payload=b"." * size, priority=8))
        await worker.settle(await worker.claim_one(), retried(0))
        await worker.settle(await worker.claim_one(), failed())
        now = await advance(5)
        assert await storage.redrive(QUEUE, ["x"]) == 1
        record = await storage.get(QUEUE, "x")
        assert record is not None
        assert (record.state, record.priority, record.changed_ms) == (JobState.QUEUED, 8, now)
        assert (record.failures, record.stalls, record.errors) == (0, 0, [])
        assert (record.reason, record.run_ms) == ("", 0)
        assert record.payload == b"." * size
        # Starts go on, since a claim is fenced by its epoch.
        assert record.starts == 2
        assert (await storage.stats(QUEUE)).dead == 0
        job = await worker.claim_one()
        assert (job.failures, job.stalls, job.claim.epoch) == (0, 0, 3)
        assert await worker.settle(job, completed())

    async def test_only_dead_letters_are_redriven(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        names = [state.value for state in EACH_STATE if state is not JobState.FAILED]
        for name in names:
            await bring(JobState(name), client, worker, name)
        before = await dump()
        assert await storage.redrive(QUEUE, [*names, "unknown"]) == 0
        assert await dump() == before

    async def test_redriven_jobs_go_to_the_tail_in_the_order_given(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        for name in "abc":
            await bring(JobState.FAILED, client, worker, name)
        await client.enqueue(a_job("first"))
        assert await storage.redrive(QUEUE, ["c", "a", "c", "b"]) == 3
        assert ids(await worker.claim()) == ["first", "c", "a", "b"]

    async def test_an_expired_job_is_redriven_without_its_expiry(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_job(expires_in_ms=10))
        await advance(10)
        assert await worker.claim() == []
        assert await storage.redrive(QUEUE, ["x"]) == 1
        await advance(DAY_MS)
        assert ids(await worker.claim()) == ["x"]

    async def test_a_stalled_job_may_stall_as_often_again(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await client.enqueue(a_job(max_stalls=1))
        for n in range(2):
            worker = await ContractIncarnation(storage, f"victim-{n}").register()
            await worker.claim_one()
            await worker.die()
            record = await storage.get(QUEUE, "x")
            assert record is not None
            assert (record.reason, record.stalls) == (FailReason.STALLED, 1)
            assert await storage.redrive(QUEUE, ["x"]) == 1

    async def test_a_job_of_an_unknown_task_may_wait_a_day_again(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_job())
        await worker.settle(await worker.claim_one(), unknown_task(DAY_MS + 1))
        await advance(DAY_MS + 1)
        await worker.settle(await worker.claim_one(), unknown_task())
        assert await state_of(storage) is JobState.FAILED
        assert await storage.redrive(QUEUE, ["x"]) == 1
        await worker.settle(await worker.claim_one(), unknown_task())
        assert await state_of(storage) is JobState.SCHEDULED

    async def test_a_cancel_that_came_too_late_does_not_follow_the_redriven_job(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await bring(JobState.ACTIVE, client, worker)
        assert job is not None
        await storage.cancel(QUEUE, ["x"])
        await worker.settle(job, failed())
        await storage.redrive(QUEUE, ["x"])
        again = await worker.claim_one()
        assert worker.beat().cancel_ids == []
        await worker.settle(again, retried())
        assert await state_of(storage) is JobState.RETRYING

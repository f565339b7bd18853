"""Contract of ``put_back``: to the head, in order, free of charge (G5, G9)."""

from __future__ import annotations

import pytest

from headrace.storage import Claim, JobState, Storage
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    QUEUE,
    STATES,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    ids,
)


class PutBackContract(Contract):
    """Tests of ``put_back``."""

    async def test_jobs_return_to_the_head_in_the_order_given(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
    ) -> None:
        await client.enqueue(*(a_job(f"{n}") for n in range(6)))
        jobs = await worker.claim(4)
        await storage.put_back(QUEUE, worker.name, [(job.id, job.claim) for job in jobs])
        assert ids(await other.claim()) == ["0", "1", "2", "3", "4", "5"]

    async def test_each_job_returns_to_its_own_tier_and_lane(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job("low", priority=0), a_job("high", priority=9))
        await client.enqueue(a_job("process", lane="process", priority=9))
        jobs = await worker.claim(slots={"default": 2, "process": 1})
        await storage.put_back(QUEUE, worker.name, [(job.id, job.claim) for job in reversed(jobs)])
        assert ids(await worker.claim(slots={"default": 9})) == ["high", "low"]
        assert ids(await worker.claim(slots={"process": 9})) == ["process"]

    async def test_nothing_is_charged(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        job = await bring(JobState.ACTIVE, client, worker)
        assert job is not None
        now = await advance(10)
        await storage.put_back(QUEUE, worker.name, [(job.id, job.claim)])
        record = await storage.get(QUEUE, "x")
        assert record is not None
        assert (record.state, record.changed_ms) == (JobState.QUEUED, now)
        assert (record.failures, record.stalls, record.starts, record.errors) == (0, 0, 1, [])
        again = await worker.claim_one()
        assert (again.claim.epoch, again.failures, again.stalls) == (2, 0, 0)

    async def test_a_repeated_put_back_changes_nothing(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        job = await bring(JobState.ACTIVE, client, worker)
        assert job is not None
        pairs = [(job.id, job.claim)] * 2
        await storage.put_back(QUEUE, worker.name, pairs)
        before = await dump()
        await storage.put_back(QUEUE, worker.name, pairs)
        assert await dump() == before

    async def test_other_claims_are_passed_over(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        job = await bring(JobState.ACTIVE, client, worker)
        assert job is not None
        before = await dump()
        epoch, nonce = job.claim.epoch, job.claim.nonce
        await storage.put_back(
            QUEUE,
            worker.name,
            [
                ("x", Claim(epoch + 1, nonce)),
                ("x", Claim(epoch, nonce + "0")),
                ("unknown", job.claim),
            ],
        )
        assert await dump() == before

    @pytest.mark.parametrize("state", [state for state in STATES if state is not JobState.ACTIVE])
    async def test_a_job_that_is_not_active_is_passed_over(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        dump: Dump,
        state: JobState,
    ) -> None:
        job = await bring(state, client, worker)
        claim = job.claim if job else Claim(0, "")
        before = await dump()
        await storage.put_back(QUEUE, worker.name, [("x", claim)])
        assert await dump() == before

"""Contract of ``put_back``, to the head and in order, and of the outcome of that name (G5, G9)."""

from __future__ import annotations

import pytest

from headrace.storage import Claim, FailReason, JobState, Outcome, Storage
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    HOUR_MS,
    MINUTE_MS,
    QUEUE,
    STATES,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    completed,
    ids,
    misfit,
    record_of,
    retried,
    snoozed,
    stalled,
    started,
    state_of,
    unknown_task,
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

    async def test_a_job_of_an_unknown_task_waits_free_of_charge(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        job = await started(client, worker)
        assert await worker.settle(job, unknown_task(5_000))
        record = await record_of(storage)
        assert (record.state, record.due_ms) == (JobState.SCHEDULED, await advance(0) + 5_000)
        assert (record.failures, record.stalls, record.errors) == (0, 0, [])
        await advance(5_000)
        assert ids(await worker.claim()) == ["x"]

    async def test_what_a_job_is_put_back_for_is_told_until_it_has_run_or_ended(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        job = await started(client, worker)
        assert (await record_of(storage)).put_back is None
        first_ms = await advance(0)
        await worker.settle(job, unknown_task(0))
        await advance(1)
        await worker.settle(await worker.claim_one(), misfit(MINUTE_MS))
        found = (await record_of(storage)).put_back
        assert found is not None
        assert (found.type, found.message) == ("ValidationError", "\tno field `b`\n")
        assert (found.start, found.at_ms) == (1, first_ms)
        [row] = (await storage.list_jobs(QUEUE, JobState.SCHEDULED)).rows
        assert (row.error, row.error_message) == ("ValidationError", "\tno field `b`\n")
        assert row.reason == ""
        await advance(1_000)
        job = await worker.claim_one()
        [row] = (await storage.list_jobs(QUEUE, JobState.ACTIVE)).rows
        assert row.error == "ValidationError"
        await worker.settle(job, retried(0))
        assert (await record_of(storage)).put_back is None
        [row] = (await storage.list_jobs(QUEUE, JobState.RETRYING)).rows
        assert row.error == ""
        await worker.settle(await worker.claim_one(), unknown_task(0))
        await worker.settle(await worker.claim_one(), completed())
        assert (await record_of(storage)).put_back is None
        [row] = (await storage.list_jobs(QUEUE, JobState.COMPLETED)).rows
        assert row.error == ""

    async def test_over_its_limit_a_job_that_is_put_back_is_a_dead_letter_of_that_reason(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await worker.settle(await started(client, worker), misfit(MINUTE_MS))
        await advance(MINUTE_MS)
        await worker.settle(await worker.claim_one(), misfit(MINUTE_MS))
        assert await state_of(storage) is JobState.SCHEDULED
        await advance(1_000)
        await worker.settle(await worker.claim_one(), misfit(MINUTE_MS))
        record = await record_of(storage)
        assert (record.state, record.reason) == (JobState.FAILED, FailReason.UNDECODABLE)
        assert (record.failures, record.stalls, record.starts) == (0, 0, 3)
        assert [error.type for error in record.errors] == ["ValidationError"]
        assert await storage.redrive(QUEUE, ["x"]) == 1
        assert (await record_of(storage)).put_back is None
        await worker.settle(await worker.claim_one(), misfit(MINUTE_MS))
        assert await state_of(storage) is JobState.SCHEDULED

    @pytest.mark.parametrize(
        "outcome", [retried(0), stalled(), snoozed(0)], ids=["retried", "stalled", "snoozed"]
    )
    async def test_a_handler_that_has_run_ends_a_row_of_put_backs(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        outcome: Outcome,
    ) -> None:
        await worker.settle(await started(client, worker), misfit(MINUTE_MS))
        await advance(HOUR_MS)
        await worker.settle(await worker.claim_one(), outcome)
        await worker.settle(await worker.claim_one(), misfit(MINUTE_MS))
        assert await state_of(storage) is JobState.SCHEDULED

    async def test_after_a_day_of_put_backs_the_job_is_a_dead_letter(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_job())
        for hour in range(24):
            assert await worker.settle(await worker.claim_one(), unknown_task(HOUR_MS)), hour
            assert await state_of(storage) is JobState.SCHEDULED
            await advance(HOUR_MS)
        # 24 h to the millisecond is not over them.
        assert await worker.settle(await worker.claim_one(), unknown_task(1))
        assert await state_of(storage) is JobState.SCHEDULED
        await advance(1)
        assert await worker.settle(await worker.claim_one(), unknown_task(1))
        record = await record_of(storage)
        assert (record.state, record.reason) == (JobState.FAILED, FailReason.UNKNOWN_TASK)
        assert (record.failures, record.stalls, record.starts) == (0, 0, 26)
        assert [error.message for error in record.errors] == ["send"]

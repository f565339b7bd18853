"""Contract of limits for jobs that are not enqueued: those that are fired, published or brought."""

from __future__ import annotations

from headrace.storage import (
    EnqueueOutcome,
    FailReason,
    JobState,
    Storage,
    Terms,
)
from headrace.testing.contract.bulk_steps import ContractWriter, publish_all, report_of
from headrace.testing.contract.fixtures import Advance, Contract
from headrace.testing.contract.schedule_steps import an_occurrence, fire
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_gated_job,
    completed,
    failed,
    gate_counts,
    ids,
    record_of,
    state_of,
)

ONE = Terms(1)


class GatedEntriesContract(Contract):
    """Tests of limits of jobs that come otherwise than by ``enqueue``."""

    async def test_published_jobs_meet_their_limits(
        self, storage: Storage, worker: ContractIncarnation
    ) -> None:
        writer = ContractWriter(storage)
        await writer.stage(a_gated_job("a", "k", ONE), a_gated_job("b", "k", ONE))
        await writer.stage(a_gated_job("c", "other", ONE), a_gated_job("d", "k", ONE))
        await writer.commit()
        assert await gate_counts(storage, "k") == (0, 0, 0)
        await publish_all(storage)
        assert await gate_counts(storage, "k") == (1, 0, 2)
        info = await report_of(storage)
        assert (info.jobs, info.added) == (4, 4)
        first, other = await worker.claim()
        assert ids([first, other]) == ["a", "c"]
        assert await worker.settle(first, completed())
        assert ids(await worker.claim()) == ["b"]

    async def test_fired_jobs_meet_their_limits(
        self, storage: Storage, worker: ContractIncarnation
    ) -> None:
        gates = a_gated_job("a", "k", ONE).gates
        occurrences = [an_occurrence(n, gates=gates) for n in (1, 2)]
        outcomes = await fire(storage, *occurrences)
        assert outcomes == [EnqueueOutcome.QUEUED, EnqueueOutcome.BLOCKED]
        assert await gate_counts(storage, "k") == (1, 0, 1)
        assert await fire(storage, *occurrences) == [EnqueueOutcome.DUPLICATE] * 2
        assert await worker.settle(await worker.claim_one(), completed())
        assert ids(await worker.claim()) == ["s:2"]

    async def test_what_a_dead_letter_brings_has_no_limits_of_its_own(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(
            a_gated_job("a", "k", ONE, on_failed="mourn"), a_gated_job("b", "k", ONE)
        )
        assert await worker.settle(await worker.claim_one(), failed())
        assert await gate_counts(storage, "k") == (1, 0, 0)
        jobs = await worker.claim()
        assert [job.task for job in jobs] == ["send", "mourn"]
        assert (await record_of(storage, jobs[1].id)).gates == ""

    async def test_a_dead_letter_is_exported_with_its_limits(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", ONE))
        assert await worker.settle(await worker.claim_one(), failed(FailReason.PERMANENT))
        await advance(1)
        [record] = (await storage.export(QUEUE, JobState.FAILED)).records
        assert (record.gates, record.parked) == ("stripe\tk", "")

    async def test_redriven_jobs_meet_their_limits_in_the_order_in_which_they_are_named(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_gated_job(name, "k", Terms(2)) for name in "abc"))
        while jobs := await worker.claim():
            for job in jobs:
                assert await worker.settle(job, failed())
        assert await gate_counts(storage, "k") == (0, 0, 0)
        assert await storage.redrive(QUEUE, ["c", "b", "a"]) == 3
        assert await gate_counts(storage, "k") == (2, 0, 1)
        assert await state_of(storage, "a") is JobState.BLOCKED
        first, _ = await worker.claim()
        assert await worker.settle(first, completed())
        assert ids(await worker.claim()) == ["a"]

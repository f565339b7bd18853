"""Contract of ``settle`` with ``Snoozed``: a job waits, and is charged with nothing (G9)."""

from __future__ import annotations

from headrace.storage import JobState, Storage
from headrace.testing.contract.fixtures import Advance, Contract
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    completed,
    record_of,
    retried,
    snoozed,
    stalled,
)


class SnoozeContract(Contract):
    """Tests of ``settle`` with the outcome ``Snoozed``."""

    async def test_a_snoozed_job_waits_free_of_charge(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        # G9: neither a failure nor a stall, however often.
        await client.enqueue(a_job(max_stalls=1))
        for start in (1, 2, 3):
            job = await worker.claim_one()
            assert (job.claim.epoch, job.failures, job.stalls) == (start, 0, 0)
            assert await worker.settle(job, snoozed(5_000, "not yet"), run_ms=6)
            record = await record_of(storage)
            assert (record.state, record.due_ms) == (JobState.SCHEDULED, await advance(0) + 5_000)
            assert (record.failures, record.stalls, record.starts) == (0, 0, start)
            assert (record.run_ms, record.reason, record.errors) == (6, "", [])
            assert await worker.claim() == []
            await advance(5_000)
        stats = await storage.stats(QUEUE)
        assert (stats.scheduled, stats.retried, stats.stalled) == (1, 0, 0)
        assert await worker.settle(await worker.claim_one(), completed())

    async def test_a_snoozed_job_keeps_what_it_was_charged_with(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job())
        for outcome in (retried(0), stalled(), snoozed(0), retried(0)):
            assert await worker.settle(await worker.claim_one(), outcome)
        record = await record_of(storage)
        assert (record.failures, record.stalls, record.starts) == (2, 1, 4)
        assert [error.start for error in record.errors] == [4, 2, 1]

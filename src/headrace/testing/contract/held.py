"""Contract of ``held``: what a worker is thought to run."""

from __future__ import annotations

from headrace.storage import Storage
from headrace.testing.contract.fixtures import Contract
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    completed,
    retried,
)


class HeldContract(Contract):
    """Tests of ``held``."""

    async def test_held_are_exactly_the_claims_that_are_current(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
    ) -> None:
        assert await storage.held(QUEUE, worker.name) == []
        await client.enqueue(*(a_job(name) for name in "abcde"))
        jobs = {job.id: job for job in await worker.claim(4)}
        await other.claim_one()
        await worker.settle(jobs["a"], completed())
        await worker.settle(jobs["b"], retried())
        await storage.put_back(QUEUE, worker.name, [("c", jobs["c"].claim)])
        assert await storage.held(QUEUE, worker.name) == [("d", jobs["d"].claim)]
        assert await storage.held(QUEUE, "nobody") == []

"""Contract of ``queues``."""

from __future__ import annotations

from headrace.storage import CallId, Storage
from headrace.testing.contract.fixtures import Contract
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
)


class QueuesContract(Contract):
    """Tests of ``queues``."""

    async def test_queues_are_known_from_their_first_job_or_worker_on(
        self, storage: Storage, client: ContractClient
    ) -> None:
        assert await storage.queues() == []
        await client.enqueue(a_job())
        await storage.enqueue("zebra", [a_job()], call=CallId("c1", 1))
        await storage.register("alpha", ContractIncarnation(storage, "w1").info)
        assert await storage.queues() == ["alpha", QUEUE, "zebra"]
        await storage.retire("alpha", "w1")

"""Contract of ``queues`` and ``tenants``."""

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
    """Tests of ``queues`` and ``tenants``."""

    async def test_queues_are_known_from_their_first_job_or_worker_on(
        self, storage: Storage, client: ContractClient
    ) -> None:
        assert await storage.queues() == []
        await client.enqueue(a_job())
        await storage.enqueue("zebra", [a_job()], call=CallId("c1", 1))
        await storage.register("alpha", ContractIncarnation(storage, "w1").info)
        assert await storage.queues() == ["alpha", QUEUE, "zebra"]
        await storage.retire("alpha", "w1")

    async def test_a_queue_that_is_paused_before_its_first_job_is_known(
        self, storage: Storage
    ) -> None:
        await storage.resume("resumed")
        await storage.pause(QUEUE)
        await storage.pause(QUEUE)
        assert await storage.queues() == [QUEUE]
        await storage.resume(QUEUE)
        assert await storage.queues() == [QUEUE]

    async def test_tenants_are_known_while_they_have_queues(
        self, storage: Storage, client: ContractClient
    ) -> None:
        assert await storage.tenants() == []
        await client.enqueue(a_job())
        neighbour = storage.for_tenant("a.neighbour")
        await ContractClient(neighbour).enqueue(a_job())
        await storage.for_tenant("nobody").queues()
        assert await storage.tenants() == sorted([storage.tenant, "a.neighbour"])
        assert await neighbour.tenants() == await storage.tenants()
        await neighbour.aclose()

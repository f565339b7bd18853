"""Contract of ``pause`` and ``resume``."""

from __future__ import annotations

from headrace.storage import EnqueueOutcome, Storage
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    completed,
    ids,
)


class PauseContract(Contract):
    """Tests of ``pause`` and ``resume``."""

    async def test_a_paused_queue_gives_nothing_and_takes_everything(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_job("before"), a_job("due", delay_ms=5))
        await storage.pause(QUEUE)
        assert (await storage.stats(QUEUE)).is_paused
        assert await client.enqueue(a_job("after")) == [EnqueueOutcome.QUEUED]
        await advance(5)
        reply = await worker.ask()
        assert (reply.is_paused, reply.has_more, reply.jobs) == (True, False, [])
        await storage.resume(QUEUE)
        assert not (await storage.stats(QUEUE)).is_paused
        reply = await worker.ask()
        assert (reply.is_paused, ids(reply.jobs)) == (False, ["before", "after", "due"])

    async def test_active_jobs_go_on(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job())
        job = await worker.claim_one()
        await storage.pause(QUEUE)
        assert not worker.beat().is_gone
        assert await worker.settle(job, completed())

    async def test_pausing_and_resuming_twice_is_once(
        self, storage: Storage, client: ContractClient, dump: Dump
    ) -> None:
        await client.enqueue(a_job())
        for step in (storage.pause, storage.resume):
            await step(QUEUE)
            before = await dump()
            await step(QUEUE)
            assert await dump() == before

    async def test_a_paused_queue_wakes_nobody_and_its_resume_does(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await storage.pause(QUEUE)
        await client.enqueue(a_job())
        waiter = storage.open_waiter(QUEUE, worker.name, "default")
        try:
            assert not await waiter.wait(0.01)
            await storage.resume(QUEUE)
            assert await waiter.wait(2)
        finally:
            await waiter.aclose()
        assert ids(await worker.claim()) == ["x"]

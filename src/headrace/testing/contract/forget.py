"""Contract of ``forget``."""

from __future__ import annotations

from headrace.storage import JobState, Storage
from headrace.testing.contract.fixtures import Contract, Dump
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    bring,
)


class ForgetContract(Contract):
    """Tests of ``forget``."""

    async def test_a_live_incarnation_is_not_forgotten(
        self, storage: Storage, worker: ContractIncarnation, dump: Dump
    ) -> None:
        before = await dump()
        assert not await storage.forget(QUEUE, worker.name)
        assert await dump() == before

    async def test_a_forgotten_incarnation_leaves_no_key(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        await bring(JobState.ACTIVE, client, worker)
        await storage.cancel(QUEUE, ["x"])
        await worker.die()
        assert await storage.workers(QUEUE) == []
        assert not [key for key in await dump() if worker.name in key]
        assert await storage.forget(QUEUE, worker.name)

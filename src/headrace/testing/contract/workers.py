"""Contract of ``workers``."""

from __future__ import annotations

from headrace.storage import JobState, Storage
from headrace.testing.contract.fixtures import Contract, Dump
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
)


class WorkersContract(Contract):
    """Tests of ``workers``."""

    async def test_workers_count_what_they_hold(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
    ) -> None:
        await client.enqueue(*(a_job(f"{n}") for n in range(5)))
        await worker.claim(3)
        await other.claim(1)
        assert {info.incarnation: info.active for info in await storage.workers(QUEUE)} == {
            "w1": 3,
            "w2": 1,
        }

    async def test_a_condemned_incarnation_stays_listed_as_such(
        self, storage: Storage, worker: ContractIncarnation
    ) -> None:
        await worker.reap_once()
        [info] = await storage.workers(QUEUE)
        assert (info.incarnation, info.is_condemned, info.lease_ms) == ("w1", True, 15_000)
        assert (await storage.beats(QUEUE))["w1"].is_condemned

    async def test_reading_beats_workers_and_held_changes_nothing(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        await bring(JobState.ACTIVE, client, worker)
        before = await dump()
        await storage.beats(QUEUE)
        await storage.workers(QUEUE)
        await storage.held(QUEUE, worker.name)
        await storage.held("no-such-queue", "nobody")
        assert await dump() == before

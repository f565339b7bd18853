"""Contract of ``retire``: a worker that ends hands everything back (G14)."""

from __future__ import annotations

from headrace.storage import JobState, Storage
from headrace.testing.contract.fixtures import Contract, Dump
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    ids,
    left_events,
)


class RetireContract(Contract):
    """Tests of ``retire``."""

    async def test_a_retired_incarnation_is_forgotten_with_all_its_keys(
        self, storage: Storage, worker: ContractIncarnation, dump: Dump
    ) -> None:
        assert await storage.retire(QUEUE, worker.name) == 0
        assert await storage.workers(QUEUE) == []
        assert await storage.beats(QUEUE) == {}
        assert not [key for key in await dump() if worker.name in key]
        assert worker.beat().is_gone

    async def test_what_it_held_goes_back_to_the_head_free_of_charge(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
    ) -> None:
        await bring(JobState.ACTIVE, client, worker)
        await client.enqueue(a_job("behind"))
        assert await storage.retire(QUEUE, worker.name) == 0
        record = await storage.get(QUEUE, "x")
        assert record is not None
        assert (record.state, record.failures, record.stalls) == (JobState.QUEUED, 0, 0)
        assert ids(await other.claim()) == ["x", "behind"]

    async def test_at_most_200_go_back_in_one_call(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
    ) -> None:
        await client.enqueue(*(a_job(f"{n}") for n in range(500)))
        while await worker.claim():
            pass
        left = [await storage.retire(QUEUE, worker.name) for _ in range(3)]
        assert left == [300, 100, 0]
        assert (await storage.stats(QUEUE)).queued == 500
        assert len(await other.claim()) == 500

    async def test_the_last_call_leaves_an_event(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        for start in (0, 400):
            await client.enqueue(*(a_job(f"{n}") for n in range(start, start + 400)))
        while await worker.claim():
            pass
        told = []
        while await storage.retire(QUEUE, worker.name):
            told += await left_events(storage)
        assert told == []
        await storage.retire(QUEUE, worker.name)
        [event] = await left_events(storage)
        assert (event.job_id, event.incarnation, event.detail) == ("w1", "w1", "retired")
        assert (event.worker, event.host) == ("mailer", "host-1")
        assert (event.version, event.app_version) == ("1.2.3", "2025-11")

    async def test_others_keep_what_they_hold(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
    ) -> None:
        await client.enqueue(a_job("a"), a_job("b"))
        await worker.claim_one()
        await other.claim_one()
        await storage.retire(QUEUE, worker.name)
        assert [job_id for job_id, _ in await storage.held(QUEUE, other.name)] == ["b"]
        assert [info.incarnation for info in await storage.workers(QUEUE)] == [other.name]

    async def test_a_second_retire_is_no_error(
        self, storage: Storage, worker: ContractIncarnation, dump: Dump
    ) -> None:
        await storage.retire(QUEUE, worker.name)
        before = await dump()
        assert await storage.retire(QUEUE, worker.name) == 0
        assert await dump() == before

"""Contract of a queue's own bounds: how many jobs it lets run, and how many wait."""

from __future__ import annotations

import pytest

from headrace import QueueFull
from headrace.storage import EnqueueOutcome, JobState, Storage
from headrace.testing.contract.bulk_steps import ContractWriter, report_of
from headrace.testing.contract.fixtures import Contract, Dump
from headrace.testing.contract.schedule_steps import an_occurrence, fire
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    completed,
    ids,
    retried,
    state_of,
)


class QueueBoundsContract(Contract):
    """Tests of ``max_active`` and ``max_length``."""

    async def test_no_more_are_claimed_than_may_be_active_over_all_workers(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
    ) -> None:
        await storage.configure(QUEUE, max_active=3)
        await client.enqueue(*(a_job(name) for name in "abcdef"))
        a, b = await worker.claim(2)
        reply = await other.ask()
        assert (ids(reply.jobs), reply.has_more) == (["c"], False)
        reply = await worker.ask()
        assert (reply.jobs, reply.has_more) == ([], False)
        assert await worker.settle(a, completed())
        assert await worker.settle(b, retried())
        assert ids(await other.claim()) == ["d", "e"]

    async def test_the_bound_is_of_all_lanes_together(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await storage.configure(QUEUE, max_active=2)
        await client.enqueue(*(a_job(name) for name in "ab"), a_job("c", lane="process"))
        assert ids(await worker.claim(slots={"default": 1, "process": 5})) == ["a", "c"]
        assert ids(await worker.claim(slots={"default": 1, "process": 5})) == []

    async def test_what_runs_beyond_a_lowered_bound_goes_on(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_job(name) for name in "abcd"))
        a, b = await worker.claim(2)
        await storage.configure(QUEUE, max_active=1)
        assert await worker.claim() == []
        assert await worker.settle(a, completed())
        assert await worker.claim() == []
        assert await worker.settle(b, completed())
        assert ids(await worker.claim()) == ["c"]
        await storage.configure(QUEUE, max_active=0)
        assert ids(await worker.claim()) == ["d"]

    async def test_the_end_of_an_attempt_leaves_a_token_for_another_worker(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
    ) -> None:
        await storage.configure(QUEUE, max_active=1)
        await client.enqueue(a_job("a"), a_job("b"))
        a = await worker.claim_one()
        waiter = storage.open_waiter(QUEUE, other.name, "default")
        try:
            while await waiter.wait(0.01):
                assert await other.claim() == []
            assert await worker.settle(a, completed())
            assert await waiter.wait(5)
        finally:
            await waiter.aclose()

    async def test_a_full_queue_takes_nothing_of_a_call(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        await storage.configure(QUEUE, max_length=3)
        await client.enqueue(a_job("a"), a_job("b", delay_ms=1_000))
        before = await dump()
        with pytest.raises(QueueFull) as caught:
            await client.enqueue(a_job("c"), a_job("d"))
        assert (caught.value.queue, caught.value.limit, caught.value.waiting) == (QUEUE, 3, 2)
        assert await dump() == before
        assert await client.enqueue(a_job("c")) == [EnqueueOutcome.QUEUED]

    async def test_what_runs_or_is_a_duplicate_does_not_count(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await storage.configure(QUEUE, max_length=2)
        await client.enqueue(a_job("a"), a_job("b"))
        assert await client.enqueue(a_job("a"), a_job("b")) == [EnqueueOutcome.DUPLICATE] * 2
        job = await worker.claim_one()
        await client.enqueue(a_job("c"))
        # A retry is no enqueue: it waits beyond the bound.
        assert await worker.settle(job, retried())
        assert await state_of(storage, "a") is JobState.RETRYING
        with pytest.raises(QueueFull):
            await client.enqueue(a_job("d"))

    async def test_what_is_published_waits_until_a_queue_takes_any_job(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        await storage.configure(QUEUE, max_length=2)
        writer = ContractWriter(storage)
        await writer.stage(*(a_job(name) for name in "abc"))
        await writer.stage(a_job("d"))
        await writer.commit()
        await client.enqueue(a_job("x"), a_job("y"))
        before = await dump()
        with pytest.raises(QueueFull) as caught:
            await storage.publish(QUEUE)
        assert (caught.value.queue, caught.value.limit, caught.value.waiting) == (QUEUE, 2, 2)
        assert await dump() == before
        await worker.claim(1)
        # It was staged in one call, and can't come in a smaller one.
        assert await storage.publish(QUEUE) == 1
        with pytest.raises(QueueFull):
            await storage.publish(QUEUE)
        await worker.claim(3)
        assert await storage.publish(QUEUE) == 0
        assert ids(await worker.claim()) == ["c", "d"]
        assert (await report_of(storage)).added == 4

    async def test_what_is_fired_waits_until_a_queue_takes_any_job(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        await storage.configure(QUEUE, max_length=1)
        await client.enqueue(a_job("x"))
        occurrences = [an_occurrence(n) for n in (1, 2)]
        before = await dump()
        with pytest.raises(QueueFull):
            await fire(storage, *occurrences)
        assert await dump() == before
        await worker.claim(1)
        assert await fire(storage, *occurrences) == [EnqueueOutcome.QUEUED] * 2
        assert await fire(storage, *occurrences) == [EnqueueOutcome.DUPLICATE] * 2

"""Contract of updates and successors of jobs with limits: which they meet, and from when."""

from __future__ import annotations

from headrace.storage import (
    CancelOutcome,
    EnqueueOutcome,
    JobEventKind,
    JobState,
    Storage,
    Terms,
    Update,
    UpdateRunAt,
)
from headrace.testing.contract.fixtures import Contract
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_gated_job,
    a_job,
    completed,
    gate_counts,
    ids,
    record_of,
    retried,
    state_of,
)

ONE = Terms(1)
ALL = Update()
ONLY_DATA = Update(run_at=UpdateRunAt.NEVER)
QUEUED, UPDATED = EnqueueOutcome.QUEUED, EnqueueOutcome.UPDATED


class GatedUpdatesContract(Contract):
    """Tests of limits of jobs that are changed."""

    async def test_a_queued_job_with_another_key_gives_its_place_back(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", ONE), a_gated_job("b", "k", ONE))
        assert await client.enqueue(a_gated_job("a", "other", update=ONLY_DATA)) == [UPDATED]
        assert await gate_counts(storage, "k") == (1, 0, 0)
        assert await gate_counts(storage, "other") == (1, 0, 0)
        assert ids(await worker.claim()) == ["b", "a"]

    async def test_a_blocked_job_with_another_key_leaves_its_line(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_gated_job(name, "k", ONE) for name in "abc"))
        assert await client.enqueue(a_gated_job("b", "other", update=ONLY_DATA)) == [UPDATED]
        assert await gate_counts(storage, "k") == (1, 0, 1)
        assert ids(await worker.claim()) == ["a", "b"]

    async def test_a_job_whose_limits_stay_keeps_its_place(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_gated_job(name, "k", ONE) for name in "abc"))
        for name in "ab":
            job = a_gated_job(name, "k", ONE, payload=b"[1]", update=ONLY_DATA)
            assert await client.enqueue(job) == [UPDATED]
        started = []
        for _ in range(3):
            job_ = await worker.claim_one()
            started.append((job_.id, job_.payload))
            assert await worker.settle(job_, completed())
        assert started == [("a", b"[1]"), ("b", b"[1]"), ("c", b"[]")]

    async def test_a_blocked_job_may_wait_for_a_time_instead(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", ONE), a_gated_job("b", "k", ONE))
        await client.enqueue(a_gated_job("b", "k", ONE, delay_ms=1_000, update=ALL))
        assert await state_of(storage, "b") is JobState.SCHEDULED
        assert await gate_counts(storage, "k") == (1, 0, 0)

    async def test_a_job_may_lose_its_limits_and_get_some(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", ONE), a_gated_job("b", "k", ONE), a_job("c"))
        await client.enqueue(a_job("b", update=ALL), a_gated_job("c", "k", update=ALL))
        assert await state_of(storage, "b") is JobState.QUEUED
        record = await record_of(storage, "c")
        assert (record.state, record.parked) == (JobState.BLOCKED, "stripe\tk")
        assert ids(await worker.claim()) == ["a", "b"]

    async def test_a_successor_meets_its_limits_when_it_enters(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", ONE), a_gated_job("holder", "other", ONE))
        a, holder = await worker.claim()
        assert await client.enqueue(a_gated_job("a", "other", update=ALL)) == [UPDATED]
        assert await gate_counts(storage, "other") == (0, 1, 0)
        assert await worker.settle(a, completed())
        assert await gate_counts(storage, "k") == (0, 0, 0)
        assert await gate_counts(storage, "other") == (0, 1, 1)
        last = (await storage.events(QUEUE)).events[-1]
        assert (last.kind, last.detail) == (JobEventKind.BLOCKED, "stripe other")
        assert await worker.settle(holder, completed())
        assert ids(await worker.claim()) == ["a"]

    async def test_a_successor_that_changes_nothing_has_the_limits_of_the_active_one(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", ONE), a_gated_job("b", "k", ONE))
        a = await worker.claim_one()
        await client.enqueue(a_job("a", update=Update(data=False)))
        assert await worker.settle(a, completed())
        # It came when the active one ended, so the one that waited is before it.
        assert ids(await worker.claim()) == ["b"]
        assert (await record_of(storage, "a")).parked == "stripe\tk"

    async def test_an_active_job_that_waits_again_takes_the_limits_of_its_successor(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", ONE), a_gated_job("b", "k", ONE))
        a = await worker.claim_one()
        await client.enqueue(a_gated_job("a", "other", update=ONLY_DATA))
        await storage.put_back(QUEUE, worker.name, [(a.id, a.claim)])
        assert await gate_counts(storage, "k") == (1, 0, 0)
        assert await gate_counts(storage, "other") == (1, 0, 0)
        assert sorted(ids(await worker.claim())) == ["a", "b"]

    async def test_a_retried_job_takes_the_limits_of_its_successor(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", ONE), a_gated_job("b", "k", ONE))
        a = await worker.claim_one()
        await client.enqueue(a_gated_job("a", "other", update=ALL))
        assert await worker.settle(a, retried())
        assert (await record_of(storage, "a")).gates == "stripe\tother"
        assert await gate_counts(storage, "k") == (1, 0, 0)
        assert await gate_counts(storage, "other") == (1, 0, 0)

    async def test_a_job_that_a_limit_holds_up_is_nobodys_successor(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", ONE), a_gated_job("b", "k", ONE))
        assert await storage.cancel(QUEUE, ["b"], only_next=True) == [CancelOutcome.NOT_FOUND]
        assert (await storage.stats(QUEUE)).blocked == 1
        assert await worker.settle(await worker.claim_one(), completed())
        assert ids(await worker.claim()) == ["b"]

    async def test_successors_are_no_blocked_jobs_to_purge_or_to_cancel(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", ONE))
        await worker.claim_one()
        await client.enqueue(a_gated_job("a", "k", update=ALL))
        assert await storage.purge(QUEUE, JobState.BLOCKED, ["a"]) == 0
        assert (await storage.stats(QUEUE)).blocked == 1
        assert await storage.cancel(QUEUE, ["a"], only_next=True) == [CancelOutcome.CANCELLED]
        assert (await storage.stats(QUEUE)).blocked == 0

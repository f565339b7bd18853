"""Contract of limits of rate: when jobs start, and in which order; see `Limiter`."""

from __future__ import annotations

from headrace.storage import EnqueueOutcome, Gate, JobState, Storage, Terms, gates_text
from headrace.testing.contract.fixtures import Advance, Contract, Dump
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
    state_of,
    until,
)

A_SECOND = Terms(0, 1, 1_000, 1)
FOUR_A_SECOND = Terms(0, 4, 1_000, 2)
BLOCKED, QUEUED = EnqueueOutcome.BLOCKED, EnqueueOutcome.QUEUED


async def tokens(storage: Storage, key: str = "k") -> int:
    """Return how many starts a gate allows now."""
    return (await storage.gate(QUEUE, "stripe", key)).tokens


class RatesContract(Contract):
    """Tests of limits of rate."""

    async def test_no_more_are_ready_than_there_are_tokens(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        outcomes = await client.enqueue(*(a_gated_job(n, "k", FOUR_A_SECOND) for n in "abc"))
        assert outcomes == [QUEUED, QUEUED, BLOCKED]
        assert await tokens(storage) == 2
        assert ids(await worker.claim()) == ["a", "b"]
        assert await tokens(storage) == 0
        assert await client.enqueue(a_gated_job("d", "other", FOUR_A_SECOND)) == [QUEUED]

    async def test_an_end_brings_no_token(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", A_SECOND), a_gated_job("b", "k", A_SECOND))
        assert await worker.settle(await worker.claim_one(), completed())
        assert await state_of(storage, "b") is JobState.BLOCKED
        assert await worker.claim() == []

    async def test_tokens_come_evenly_and_a_claim_says_when_the_next_does(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(*(a_gated_job(name, "k", FOUR_A_SECOND) for name in "abcde"))
        reply = await worker.ask()
        assert (ids(reply.jobs), reply.next_due_ms) == (["a", "b"], 250)
        await advance(249)
        reply = await worker.ask()
        assert (reply.jobs, reply.next_due_ms, reply.has_more) == ([], 1, False)
        await advance(1)
        reply = await worker.ask()
        assert (ids(reply.jobs), reply.next_due_ms) == (["c"], 250)
        await advance(500)
        reply = await worker.ask()
        assert (ids(reply.jobs), reply.next_due_ms) == (["d", "e"], None)
        [e] = [job for job in reply.jobs if job.id == "e"]
        assert (e.failures, e.stalls, e.claim.epoch) == (0, 0, 1)

    async def test_there_are_never_more_tokens_than_the_burst(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(*(a_gated_job(name, "k", FOUR_A_SECOND) for name in "abcdefg"))
        assert ids(await worker.claim()) == ["a", "b"]
        await advance(3_600_000)
        assert await tokens(storage) == 2
        assert ids(await worker.claim()) == ["c", "d"]

    async def test_a_period_without_a_whole_number_of_milliseconds_a_token_is_kept_exactly(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(*(a_gated_job(f"{n}", "k", Terms(0, 3, 100, 2)) for n in range(40)))
        started = len(await worker.claim())
        for _ in range(100):
            await advance(10)
            started += len(await worker.claim())
        assert started == 32

    async def test_jobs_start_in_their_order_though_slots_are_fewer_than_tokens(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        names = [f"job-{n}" for n in range(9)]
        await client.enqueue(*(a_gated_job(name, "k", Terms(0, 3, 100, 3)) for name in names))
        started = []
        for _ in names:
            job = await worker.claim_one()
            started.append(job.id)
            await advance(100)
            assert await worker.settle(job, completed())
        assert started == names

    async def test_who_is_put_back_takes_a_token_for_its_next_start(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", A_SECOND), a_gated_job("b", "k", A_SECOND))
        a = await worker.claim_one()
        await storage.put_back(QUEUE, worker.name, [(a.id, a.claim)])
        assert await gate_counts(storage, "k") == (1, 0, 1)
        reply = await worker.ask()
        assert (reply.jobs, reply.next_due_ms) == ([], 1_000)
        assert await gate_counts(storage, "k") == (0, 0, 2)
        await advance(1_000)
        [again] = await worker.claim()
        assert (again.id, again.failures, again.stalls, again.claim.epoch) == ("a", 0, 0, 2)

    async def test_a_better_tier_takes_a_token_for_which_others_wait(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", A_SECOND), a_gated_job("b", "k", A_SECOND))
        assert ids(await worker.claim()) == ["a"]
        await advance(1_000)
        assert await client.enqueue(a_gated_job("c", "k")) == [BLOCKED]
        assert await client.enqueue(a_gated_job("urgent", "k", priority=9)) == [QUEUED]
        assert ids(await worker.claim()) == ["urgent"]
        await advance(1_000)
        assert ids(await worker.claim()) == ["b"]

    async def test_both_a_rate_and_a_concurrency_hold(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(*(a_gated_job(n, "k", Terms(2, 10, 1_000, 10)) for n in "abc"))
        a, _ = await worker.claim()
        await advance(1_000)
        reply = await worker.ask()
        assert (reply.jobs, reply.next_due_ms) == ([], None)
        assert await worker.settle(a, completed())
        assert ids(await worker.claim()) == ["c"]

    async def test_the_rate_of_one_gate_and_the_room_of_another_hold(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        both = gates_text([Gate("stripe", "k", A_SECOND), Gate("one", "", Terms(1))])
        await client.enqueue(a_job("a", gates=both), a_job("b", gates=both))
        a = await worker.claim_one()
        assert (await record_of(storage, "b")).parked == "stripe\tk"
        await advance(1_000)
        assert await worker.claim() == []
        assert (await record_of(storage, "b")).parked == "one\t"
        assert await tokens(storage) == 1
        assert await worker.settle(a, completed())
        assert ids(await worker.claim()) == ["b"]

    async def test_a_due_gate_is_opened_in_its_turn_among_delayed_jobs(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", A_SECOND), a_gated_job("b", "k", A_SECOND))
        await client.enqueue(a_job("sooner", delay_ms=500), a_job("later", delay_ms=1_500))
        reply = await worker.ask()
        assert (ids(reply.jobs), reply.next_due_ms) == (["a"], 500)
        await advance(500)
        reply = await worker.ask()
        assert (ids(reply.jobs), reply.next_due_ms) == (["sooner"], 500)
        await advance(500)
        reply = await worker.ask()
        assert (ids(reply.jobs), reply.next_due_ms) == (["b"], 500)

    async def test_nobody_in_line_is_due(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", A_SECOND), a_gated_job("b", "k", A_SECOND))
        assert ids(await worker.claim()) == ["a"]
        await storage.cancel(QUEUE, ["b"])
        reply = await worker.ask()
        assert (reply.jobs, reply.next_due_ms, reply.has_more) == ([], None, False)

    async def test_a_queue_that_was_paused_goes_on(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", A_SECOND), a_gated_job("b", "k", A_SECOND))
        assert ids(await worker.claim()) == ["a"]
        await storage.pause(QUEUE)
        await advance(1_000)
        assert await worker.claim() == []
        await storage.resume(QUEUE)
        assert ids(await worker.claim()) == ["b"]

    async def test_a_key_leaves_nothing_once_its_tokens_are_all_there(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        dump: Dump,
    ) -> None:
        fast = Terms(0, 1, 50, 1)
        await storage.set_limit(QUEUE, "stripe", fast)
        await client.enqueue(a_gated_job("a", "customer-77", keep_ms=0))
        assert await worker.settle(await worker.claim_one(), completed(ttl_ms=0, keep_ms=0))
        assert await tokens(storage, "customer-77") == 0
        await advance(50)
        assert await tokens(storage, "customer-77") == 1

        async def is_forgotten() -> bool:
            await storage.prune(QUEUE)
            return not [key for key in await dump() if "customer-77" in key]

        await until(is_forgotten)

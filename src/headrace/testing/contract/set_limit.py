"""Contract of ``set_limit``, ``limits``, and what workers declare: which terms hold, from when."""

from __future__ import annotations

from headrace.storage import EnqueueOutcome, Gate, LimitInfo, Storage, Terms, gates_text
from headrace.testing.contract.fixtures import Advance, Contract
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_gated_job,
    a_job,
    completed,
    gate_counts,
    ids,
)

BLOCKED, QUEUED = EnqueueOutcome.BLOCKED, EnqueueOutcome.QUEUED
ONE, TWO, TEN = Terms(1), Terms(2), Terms(10)


class SetLimitContract(Contract):
    """Tests of where the terms of a limit come from, and what follows when they change."""

    async def test_a_limit_without_terms_holds_nobody_up(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        assert await client.enqueue(*(a_gated_job(name) for name in "abc")) == [QUEUED] * 3
        assert await storage.limits(QUEUE) == []
        await storage.set_limit(QUEUE, "stripe", TWO)
        # What is ready by then starts only as far as they allow.
        assert ids(await worker.claim()) == ["a", "b"]
        assert await gate_counts(storage) == (0, 2, 1)

    async def test_the_terms_that_a_job_brings_hold_for_those_that_came_before_it_in_its_call(
        self, client: ContractClient
    ) -> None:
        jobs = [a_gated_job("a", "x"), a_gated_job("b", "y"), a_gated_job("c", "x", ONE)]
        outcomes = await client.enqueue(*jobs, a_gated_job("d", "y"), a_gated_job("e", "z"))
        assert outcomes == [QUEUED, QUEUED, BLOCKED, BLOCKED, QUEUED]

    async def test_the_first_job_a_worker_and_an_operator_say_its_terms_in_this_order(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await client.enqueue(a_gated_job("a", terms=ONE))
        await client.enqueue(a_gated_job("b", terms=TEN))
        assert await storage.limits(QUEUE) == [LimitInfo(name="stripe", declared=ONE, set=None)]
        await ContractIncarnation(
            storage, "w1", limits={"stripe": TWO.text, "mail": TEN.text}
        ).register()
        assert await storage.limits(QUEUE) == [
            LimitInfo(name="mail", declared=TEN, set=None),
            LimitInfo(name="stripe", declared=TWO, set=None),
        ]
        await storage.set_limit(QUEUE, "stripe", TEN)
        await ContractIncarnation(storage, "w2", limits={"stripe": ONE.text}).register()
        await client.enqueue(a_gated_job("c", terms=TWO))
        [_, stripe] = await storage.limits(QUEUE)
        assert stripe == LimitInfo(name="stripe", declared=ONE, set=TEN)
        assert stripe.terms == TEN
        await storage.set_limit(QUEUE, "stripe", None)
        [_, stripe] = await storage.limits(QUEUE)
        assert stripe == LimitInfo(name="stripe", declared=ONE, set=None)

    async def test_a_limit_that_only_an_operator_has_set_is_gone_when_that_is_taken_back(
        self, storage: Storage
    ) -> None:
        await storage.set_limit(QUEUE, "stripe", None)
        assert await storage.limits(QUEUE) == []
        await storage.set_limit(QUEUE, "stripe", ONE)
        assert await storage.queues() == [QUEUE]
        await storage.set_limit(QUEUE, "stripe", None)
        assert await storage.limits(QUEUE) == []

    async def test_a_queue_that_is_not_there_has_no_limits(self, storage: Storage) -> None:
        assert await storage.limits("nothing") == []
        gate = await storage.gate("nothing", "stripe", "k")
        assert (gate.terms, gate.ready, gate.active, gate.blocked, gate.tokens) == (
            None,
            *(0, 0, 0, 0),
        )

    async def test_a_raised_limit_is_followed_at_once(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_gated_job(name, "k", ONE) for name in "abcd"))
        await client.enqueue(*(a_gated_job(name, "other", ONE) for name in "xyz"))
        assert ids(await worker.claim()) == ["a", "x"]
        await storage.set_limit(QUEUE, "stripe", TWO)
        assert await gate_counts(storage, "k") == (1, 1, 2)
        assert await gate_counts(storage, "other") == (1, 1, 1)
        assert ids(await worker.claim()) == ["b", "y"]
        await storage.set_limit(QUEUE, "stripe", None)
        assert await worker.claim() == []

    async def test_a_worker_that_declares_more_lets_more_start(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_gated_job(name, "k", ONE) for name in "abc"))
        assert ids(await worker.claim()) == ["a"]
        await ContractIncarnation(storage, "w9", limits={"stripe": TWO.text}).register()
        assert ids(await worker.claim()) == ["b"]

    async def test_a_lowered_limit_lets_no_more_start_until_enough_have_ended(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_gated_job(f"{n}", "k", Terms(4)) for n in range(8)))
        first = await worker.claim(2)
        await storage.set_limit(QUEUE, "stripe", ONE)
        assert await worker.claim() == []
        assert await gate_counts(storage, "k") == (0, 2, 6)
        assert await worker.settle(first[0], completed())
        assert await worker.claim() == []
        assert await worker.settle(first[1], completed())
        assert ids(await worker.claim()) == ["2"]

    async def test_what_a_raised_limit_lets_in_beyond_the_bound_of_a_call_comes_by_claims(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        names = [f"{n:04}" for n in range(1_200)]
        for start in range(0, 1_200, 400):
            batch = names[start : start + 400]
            await client.enqueue(*(a_gated_job(name, "k", ONE) for name in batch))
        [job] = await worker.claim()
        await storage.set_limit(QUEUE, "stripe", Terms(1_000_000))
        assert (await storage.stats(QUEUE)).queued >= 50
        assert await worker.settle(job, completed())
        started: list[str] = []
        while len(started) < 1_199:
            claimed = ids(await worker.claim(100))
            assert claimed
            started += claimed
        assert started == names[1:]

    async def test_many_keys_beyond_the_bound_of_a_call_are_opened_by_claims(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        for start in range(0, 750, 250):
            keys = [f"{n:04}" for n in range(start, start + 250)]
            await client.enqueue(
                *(a_gated_job(f"{turn}-{key}", key, ONE) for key in keys for turn in "ab")
            )
        first: list[str] = []
        while len(first) < 750:
            first += ids(await worker.claim())
        assert set(first) == {f"a-{n:04}" for n in range(750)}
        await storage.set_limit(QUEUE, "stripe", TWO)
        second: list[str] = []
        while len(second) < 750:
            claimed = ids(await worker.claim())
            assert claimed
            second += claimed
        assert second == [f"b-{n:04}" for n in range(750)]

    async def test_tokens_that_were_taken_stay_taken_when_the_rate_changes(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        rate = Terms(0, 1, 60_000, 5)
        await client.enqueue(*(a_gated_job(name, "k", rate) for name in "abcdefgh"))
        assert ids(await worker.claim(4)) == ["a", "b", "c", "d"]
        await storage.set_limit(QUEUE, "stripe", Terms(0, 1, 1_000, 6))
        assert (await storage.gate(QUEUE, "stripe", "k")).tokens == 2
        assert ids(await worker.claim()) == ["e", "f"]
        await advance(1_000)
        assert ids(await worker.claim()) == ["g"]

    async def test_a_limit_becomes_another_kind(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(*(a_gated_job(name, "k", ONE) for name in "abcd"))
        assert ids(await worker.claim()) == ["a"]
        await storage.set_limit(QUEUE, "stripe", Terms(0, 1, 1_000, 1))
        assert ids(await worker.claim()) == ["b"]
        await storage.set_limit(QUEUE, "stripe", Terms(3))
        assert ids(await worker.claim()) == ["c"]

    async def test_a_job_of_an_unknown_limit_meets_it_once_it_is_known(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        by_name = gates_text([Gate("stripe", "k"), Gate("mail", "k", ONE)])
        assert await client.enqueue(a_job("a", gates=by_name)) == [QUEUED]
        assert await client.enqueue(a_job("b", gates=by_name)) == [BLOCKED]
        assert await gate_counts(storage, "k") == (1, 0, 0)
        await storage.set_limit(QUEUE, "stripe", ONE)
        await storage.set_limit(QUEUE, "mail", TEN)
        a = await worker.claim_one()
        assert await gate_counts(storage, "k") == (0, 1, 1)
        assert await worker.settle(a, completed())
        assert ids(await worker.claim()) == ["b"]

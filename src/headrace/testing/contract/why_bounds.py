"""Contract of ``why`` in large queues: it is bounded, and says so where it tells a part."""

from __future__ import annotations

from headrace.storage import (
    BATCH_LIMIT,
    HOLDERS_LOOKS,
    WHY_BEATS,
    Before,
    Storage,
    Terms,
)
from headrace.testing.contract.fixtures import Advance, Contract
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_gated_job,
    a_job,
    ids,
)
from headrace.testing.contract.turns import a_fair_job
from headrace.testing.contract.why import ONE, TWO, before, gate_of, situation


class WhyBoundsContract(Contract):
    """Tests of ``why`` where there is more than it looks at."""

    # Who comes before

    async def test_what_would_take_long_to_count_is_told_as_at_least(
        self, storage: Storage, client: ContractClient
    ) -> None:
        names = [f"{n:04}" for n in range(1_500)]
        await client.enqueue_all(map(a_job, names))
        assert await before(storage, "1400") == Before(1_400)
        await storage.cancel(QUEUE, names[:300])
        found = await before(storage, "1400")
        assert found is not None
        assert found.n == 1_100 or (found.is_least and 800 <= found.n < 1_100)

    # Who has places

    async def test_no_more_than_ten_that_have_places_are_named(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_gated_job(f"{n:02}", "k", Terms(12)) for n in range(13)))
        claimed = ids(await worker.claim(11))
        gate = await gate_of(storage, "12")
        assert (gate.ready, gate.active, len(gate.holders)) == (1, 11, 10)
        assert set(gate.holders) <= set(claimed)

    async def test_a_job_that_runs_among_many_is_counted_and_named_if_it_is_found(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        many = 2 * HOLDERS_LOOKS
        others = (a_gated_job(f"{n}", f"{n}", ONE) for n in range(many))
        await client.enqueue_all([*others, a_gated_job("one", "k", ONE)])
        assert len(await worker.claim(BATCH_LIMIT)) == many + 1
        await client.enqueue(a_gated_job("x", "k", ONE))
        gate = await gate_of(storage, "x")
        assert (gate.ready, gate.active, gate.before) == (0, 1, Before(0))
        assert gate.holders in ([], ["one"])

    async def test_one_that_is_ready_is_looked_for_in_the_line_of_the_job_first(
        self, storage: Storage, client: ContractClient
    ) -> None:
        many = HOLDERS_LOOKS + 1
        await client.enqueue_all(a_job(f"{n}", priority=9) for n in range(many))
        await client.enqueue(a_fair_job("one", "k"), a_fair_job("x", "k"))
        assert (await gate_of(storage, "x")).holders == ["one"]

    async def test_one_that_is_ready_elsewhere_is_found_too(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await client.enqueue(a_job("a"), a_job("b", lane="gpu"))
        await client.enqueue(
            a_gated_job("high", "k", TWO, priority=9), a_gated_job("gpu", "k", TWO, lane="gpu")
        )
        await client.enqueue(a_gated_job("x", "k", TWO))
        gate = await gate_of(storage, "x")
        assert (gate.ready, sorted(gate.holders)) == (2, ["gpu", "high"])

    async def test_one_that_was_cancelled_has_no_place(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await client.enqueue(*(a_gated_job(name, "k", TWO) for name in "abcx"))
        await storage.cancel(QUEUE, ["a"])
        assert (await gate_of(storage, "x")).holders == ["b", "c"]

    # Workers

    async def test_no_more_than_a_hundred_workers_are_told(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await client.enqueue(a_job("x"))
        for n in range(101):
            await ContractIncarnation(storage, f"w{n:03}").register()
        found = await situation(storage)
        assert [worker.incarnation for worker in found.workers] == [f"w{n:03}" for n in range(100)]
        assert found.has_more_workers

    async def test_one_among_very_many_dead_ones_is_told_or_said_to_be_possible(
        self, storage: Storage, client: ContractClient, advance: Advance
    ) -> None:
        await client.enqueue(a_job("x"))
        for n in range(WHY_BEATS + 1):
            await ContractIncarnation(storage, f"w{n:03}", lease_ms=1_000).register()
        await advance(1_001)
        found = await situation(storage)
        assert found.workers == []
        await ContractIncarnation(storage, "z").register()
        found = await situation(storage)
        told = [worker.incarnation for worker in found.workers]
        assert told == ["z"] or (told == [] and found.has_more_workers)

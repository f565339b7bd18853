"""Contract of tiers that age: lower ones get a share of the starts; see `QueueSettings.aging`."""

from __future__ import annotations

from headrace.storage import CancelOutcome, Storage
from headrace.testing.contract.fixtures import Advance, Contract
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_gated_job,
    a_job,
    ids,
)


async def three_tiers(client: ContractClient, advance: Advance, *, urgent: int = 8) -> None:
    """Store jobs of three tiers; of the lower two the lowest waits longest."""
    await client.enqueue(a_job("low1", priority=0), a_job("low2", priority=0))
    await advance(1)
    await client.enqueue(a_job("mid1"), a_job("mid2"))
    await advance(1)
    await client.enqueue(*(a_job(f"u{n}", priority=9) for n in range(1, urgent + 1)))


class AgingContract(Contract):
    """Tests of the share of lower tiers."""

    async def test_tiers_are_strict_unless_it_is_set(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await three_tiers(client, advance, urgent=3)
        assert ids(await worker.claim()) == ["u1", "u2", "u3", "mid1", "mid2", "low1", "low2"]

    async def test_one_of_so_many_is_of_the_lower_tier_whose_head_waits_longest(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await storage.configure(QUEUE, aging=3)
        await three_tiers(client, advance)
        assert ids(await worker.claim(9)) == [
            *("u1", "u2", "low1"),
            *("u3", "u4", "low2"),
            *("u5", "u6", "mid1"),
        ]

    async def test_it_is_counted_over_claims_and_workers(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await storage.configure(QUEUE, aging=4)
        await three_tiers(client, advance)
        started = []
        for n in range(8):
            started += ids(await (other if n % 2 else worker).claim(1))
        assert started == ["u1", "u2", "u3", "low1", "u4", "u5", "u6", "low2"]

    async def test_where_nothing_lower_waits_the_next_that_comes_has_its_share(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await storage.configure(QUEUE, aging=3)
        await client.enqueue(*(a_job(f"u{n}", priority=9) for n in range(1, 9)))
        assert ids(await worker.claim(5)) == ["u1", "u2", "u3", "u4", "u5"]
        await client.enqueue(a_job("mid1"), a_job("mid2"))
        assert ids(await worker.claim(4)) == ["mid1", "u6", "u7", "mid2"]

    async def test_the_share_is_of_the_lane_that_is_asked_for(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await storage.configure(QUEUE, aging=2)
        await client.enqueue(a_job("elsewhere", lane="gpu", priority=0))
        await three_tiers(client, advance, urgent=2)
        assert ids(await worker.claim(4)) == ["u1", "low1", "u2", "low2"]

    async def test_what_was_cancelled_is_no_head(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await storage.configure(QUEUE, aging=2)
        await three_tiers(client, advance, urgent=3)
        cancelled = await storage.cancel(QUEUE, ["low1", "low2", "u1"])
        assert cancelled == [CancelOutcome.CANCELLED] * 3
        assert ids(await worker.claim(4)) == ["u2", "mid1", "u3", "mid2"]

    async def test_one_that_expires_by_then_does_not_count(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await storage.configure(QUEUE, aging=2)
        await client.enqueue(a_job("late", priority=0, expires_in_ms=1))
        await three_tiers(client, advance, urgent=2)
        assert ids(await worker.claim(2)) == ["u1", "low1"]

    async def test_keys_take_turns_within_tiers_that_age(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await storage.configure(QUEUE, aging=2)
        for tier, name in ((5, "mid"), (9, "u")):
            await client.enqueue(
                *(
                    a_gated_job(f"{name}{key}{n}", key, name="fair", priority=tier)
                    for key in "ab"
                    for n in (1, 2)
                )
            )
            await advance(1)
        assert ids(await worker.claim(8)) == [
            *("ua1", "mida1", "ub1", "midb1"),
            *("ua2", "mida2", "ub2", "midb2"),
        ]

    async def test_after_it_is_taken_back_tiers_are_strict_again(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await storage.configure(QUEUE, aging=2)
        await three_tiers(client, advance, urgent=3)
        assert ids(await worker.claim(1)) == ["u1"]
        await storage.configure(QUEUE, aging=0)
        assert ids(await worker.claim(3)) == ["u2", "u3", "mid1"]

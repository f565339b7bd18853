"""Contract of `Job.slots`: jobs that hold several slots of their lane, and who may take them."""

from __future__ import annotations

from headrace.storage import FreeSlots, SlotsAsked, Storage, Update
from headrace.testing.contract.fixtures import Contract
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    completed,
    ids,
    record_of,
    retried,
)


def of(free: int, total: int) -> SlotsAsked:
    """Return what a worker asks for that has so many free slots of so many."""
    return {"default": FreeSlots(free, total)}


class SlotsContract(Contract):
    """Tests of heavy jobs."""

    async def test_a_job_holds_its_slots_and_says_so(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job("heavy", slots=3), *(a_job(f"{n}") for n in range(4)))
        assert (await record_of(storage, "heavy")).slots == 3
        jobs = await worker.claim(5)
        assert [(job.id, job.slots) for job in jobs] == [("heavy", 3), ("0", 1), ("1", 1)]

    async def test_a_repeated_claim_says_them_too(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job(slots=1_000))
        nonce = worker.nonce()
        for _ in range(2):
            reply = await worker.ask(slots=of(1_000, 1_000), number=1, nonce=nonce)
            assert [(job.id, job.slots) for job in reply.jobs] == [("x", 1_000)]

    async def test_one_that_needs_more_than_are_free_is_waited_for_and_nobody_overtakes_it(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job("0"), a_job("heavy", slots=4), a_job("1"), a_job("2"))
        reply = await worker.ask(slots=of(3, 5))
        assert (ids(reply.jobs), reply.awaited, reply.has_more) == (["0"], {"default": 4}, False)
        reply = await worker.ask(slots=of(2, 5))
        assert (ids(reply.jobs), reply.awaited, reply.has_more) == ([], {"default": 4}, False)
        reply = await worker.ask(slots=of(4, 5))
        assert (ids(reply.jobs), reply.awaited, reply.has_more) == (["heavy"], {}, True)
        assert ids(await worker.claim(5)) == ["1", "2"]

    async def test_one_that_needs_more_than_there_are_is_passed_over_and_keeps_its_place(
        self, client: ContractClient, worker: ContractIncarnation, other: ContractIncarnation
    ) -> None:
        await client.enqueue(
            a_job("h0", slots=4), a_job("0"), a_job("h1", slots=9), a_job("1"), a_job("h2", slots=4)
        )
        reply = await worker.ask(slots=of(3, 3))
        assert (ids(reply.jobs), reply.awaited, reply.has_more) == (["0", "1"], {}, False)
        reply = await worker.ask(slots=of(3, 3))
        assert (ids(reply.jobs), reply.awaited, reply.has_more) == ([], {}, False)
        await client.enqueue(a_job("2"))
        assert ids(await other.claim(17)) == ["h0", "h1", "h2"]
        assert ids(await other.claim(1)) == ["2"]

    async def test_a_tier_above_goes_first_and_one_below_waits(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(
            a_job("low", priority=1), a_job("heavy", slots=3), a_job("high", priority=9)
        )
        reply = await worker.ask(slots=of(3, 3))
        assert (ids(reply.jobs), reply.awaited) == (["high"], {"default": 3})
        assert ids(await worker.claim(slots=of(3, 3))) == ["heavy"]

    async def test_each_lane_waits_for_itself(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(
            a_job("g0", lane="gpu", slots=2), a_job("g1", lane="gpu"), a_job("d0"), a_job("d1")
        )
        slots: SlotsAsked = {"gpu": FreeSlots(1, 2), "default": 2}
        reply = await worker.ask(slots=slots)
        assert (ids(reply.jobs), reply.awaited) == (["d0", "d1"], {"gpu": 2})

    async def test_what_is_waited_for_wakes_others_that_may_have_the_slots(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job(slots=2))
        waiter = storage.open_waiter(QUEUE, worker.name, "default")
        try:
            assert await waiter.wait(0.01)
            await worker.claim(slots=of(1, 2))
            assert await waiter.wait(0.01)
            await worker.claim(slots=of(1, 1))
            assert not await waiter.wait(0.01)  # those who are too small would wake each other
        finally:
            await waiter.aclose()

    async def test_a_job_that_comes_back_has_its_slots(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job(slots=2), a_job("y"))
        [job, _] = await worker.claim(3)
        await storage.put_back(QUEUE, worker.name, [(job.id, job.claim)])
        [job] = await worker.claim(2)
        assert (job.id, job.slots) == ("x", 2)
        await worker.settle(job, retried(0))
        assert (await record_of(storage, "x")).slots == 2

    async def test_one_whose_worker_died_is_at_the_head_again_with_its_slots(
        self, client: ContractClient, worker: ContractIncarnation, other: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job(slots=2), a_job("y"))
        await worker.claim(2)
        await worker.reap_once()
        jobs = await other.claim(3)
        assert [(job.id, job.slots, job.stalls) for job in jobs] == [("x", 2, 1), ("y", 1, 0)]

    async def test_an_update_changes_them_with_the_data(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job(slots=2))
        await client.enqueue(a_job(slots=3, update=Update(data=False)))
        assert (await record_of(storage, "x")).slots == 2
        await client.enqueue(a_job(slots=4, update=Update()))
        [job] = await worker.claim(4)
        assert job.slots == 4
        await client.enqueue(a_job(update=Update()))
        await worker.settle(job, completed())
        assert (await record_of(storage, "x")).slots == 1

    async def test_many_that_are_too_heavy_hide_nobody_within_the_stated_look(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_job(f"h{n}", slots=9) for n in range(199)), a_job("light"))
        assert ids(await worker.claim(slots=of(3, 8))) == ["light"]
        await client.enqueue(a_job("one more", slots=9), a_job("hidden"))
        reply = await worker.ask(slots=of(3, 8))
        assert (ids(reply.jobs), reply.has_more) == ([], False)
        assert ids(await worker.claim(9)) == ["h0"]
        assert ids(await worker.claim(slots=of(3, 8))) == ["hidden"]

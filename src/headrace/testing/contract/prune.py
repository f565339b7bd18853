"""Contract of ``prune`` and of what ``configure`` bounds: ended records go, live ones never do."""

from __future__ import annotations

import pytest

from headrace.storage import EnqueueOutcome, JobState, Outcome, Settlement, Storage
from headrace.testing.contract.bulk_steps import WRITE, ContractWriter, outlast, publish_all
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    DAY_MS,
    EACH_STATE,
    QUEUE,
    UNENDED,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    cancelled,
    completed,
    failed,
    state_of,
    until,
)


async def end_many(
    client: ContractClient, worker: ContractIncarnation, names: list[str], outcome: Outcome
) -> None:
    """Run jobs to one outcome, in order."""
    await client.enqueue(*(a_job(name, payload=b"." * 100) for name in names))
    jobs = await worker.claim(len(names))
    assert [job.id for job in jobs] == names
    await worker.settle_all(*(Settlement(job.id, job.claim, 1, outcome) for job in jobs))


async def outlive(storage: Storage, advance: Advance, job_id: str, ms: int) -> None:
    """Wait until a record that was to be kept for ``ms`` is gone."""
    await advance(ms + 1)

    async def is_gone() -> bool:
        return await storage.get(QUEUE, job_id) is None

    await until(is_gone)


async def prune_all(storage: Storage) -> int:
    """Prune to the end and return in how many calls."""
    calls, cursor = 1, await storage.prune(QUEUE)
    while cursor:
        calls, cursor = calls + 1, await storage.prune(QUEUE, cursor=cursor)
    return calls


class PruneContract(Contract):
    """Tests of ``prune``."""

    async def test_the_history_keeps_the_newest_records(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await storage.configure(QUEUE, history=3)
        for n, outcome in enumerate([completed(b"." * 100), cancelled()] * 3):
            await end_many(client, worker, [f"{n}"], outcome)
        kept = [await state_of(storage, f"{n}") is not None for n in range(6)]
        assert kept == [False, False, False, True, True, True]
        assert (await storage.stats(QUEUE)).history == 3

    async def test_the_dead_letters_keep_the_newest_records(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await storage.configure(QUEUE, dead_letters=2)
        await end_many(client, worker, ["done"], completed())
        for n in range(5):
            await end_many(client, worker, [f"{n}"], failed())
        kept = [await state_of(storage, f"{n}") is not None for n in range(5)]
        assert kept == [False, False, False, True, True]
        assert await state_of(storage, "done") is JobState.COMPLETED

    async def test_a_history_of_zero_keeps_nothing(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await storage.configure(QUEUE, history=0, dead_letters=0)
        await end_many(client, worker, ["a", "b"], completed())
        await end_many(client, worker, ["c", "d"], failed())
        assert [await state_of(storage, name) for name in "abcd"] == [None] * 4

    async def test_a_lowered_bound_is_reached_in_bounded_steps(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        # BC-65: the first call must not do it all.
        await end_many(client, worker, [f"{n}" for n in range(400)], completed())
        await storage.configure(QUEUE, history=10)
        sizes = [400]
        while sizes[-1] > 10:
            await end_many(client, worker, [f"more-{len(sizes)}"], completed())
            sizes.append((await storage.stats(QUEUE)).history)
            assert sizes[-2] - sizes[-1] <= 110
        assert len(sizes) <= 7
        assert await state_of(storage, f"more-{len(sizes) - 1}") is JobState.COMPLETED

    @pytest.mark.parametrize("state", [*UNENDED, JobState.FAILED])
    async def test_the_history_bound_spares_a_new_job_with_the_id_of_an_old_one(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        state: JobState,
    ) -> None:
        # Its old record is gone, but the place of that record in the history is not.
        await end_many(client, worker, ["x"], completed(ttl_ms=30, keep_ms=30))
        await outlive(storage, advance, "x", 30)
        await storage.configure(QUEUE, history=1)
        await bring(state, client, worker, priority=0)
        await end_many(client, worker, ["a", "b"], completed())
        assert await state_of(storage) is state
        assert (await storage.stats(QUEUE)).history == 1

    async def test_the_dead_letter_bound_spares_a_new_job_with_the_id_of_an_old_one(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await storage.configure(QUEUE, dead_letter_ttl_ms=30)
        await end_many(client, worker, ["x"], failed())
        await outlive(storage, advance, "x", 30)
        await storage.configure(QUEUE, dead_letters=1)
        await client.enqueue(a_job(delay_ms=DAY_MS))
        await end_many(client, worker, ["a", "b"], failed())
        assert await state_of(storage) is JobState.SCHEDULED

    async def test_pruning_by_age_spares_a_new_job_with_the_id_of_an_old_one(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await storage.configure(QUEUE, dead_letter_ttl_ms=30)
        await end_many(client, worker, ["x"], failed())
        await outlive(storage, advance, "x", 30)
        assert await client.enqueue(a_job()) == [EnqueueOutcome.QUEUED]
        await prune_all(storage)
        assert await state_of(storage) is JobState.QUEUED
        assert (await worker.claim_one()).id == "x"

    async def test_dead_letters_are_pruned_when_they_are_too_old(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await end_many(client, worker, ["old"], failed())
        await advance(20 * DAY_MS)
        await end_many(client, worker, ["new"], failed())
        await advance(10 * DAY_MS - 1)
        await prune_all(storage)
        assert await state_of(storage, "old") is JobState.FAILED
        await advance(1)
        await prune_all(storage)
        assert await state_of(storage, "old") is None
        assert await state_of(storage, "new") is JobState.FAILED
        assert (await storage.stats(QUEUE)).dead == 1

    async def test_the_places_of_records_that_have_ended_are_taken_out_of_the_history(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await end_many(client, worker, ["kept", "old"], completed())
        short = [f"{n}" for n in range(300)]
        await end_many(client, worker, short, completed(ttl_ms=50, keep_ms=50))
        await outlive(storage, advance, short[-1], 50)
        assert (await storage.stats(QUEUE)).history == 302
        assert await prune_all(storage) > 1
        assert (await storage.stats(QUEUE)).history == 2
        assert await state_of(storage, "kept") is JobState.COMPLETED

    async def test_pruning_a_queue_in_order_changes_nothing(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        for state in EACH_STATE:
            await bring(state, client, worker, state.value)
        before = await dump()
        await prune_all(storage)
        assert await dump() == before
        assert await storage.prune("no-such-queue") == ""
        assert await dump() == before

    async def test_a_call_prunes_at_most_200_dead_letters(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        for start in range(0, 500, 250):
            names = [f"{n}" for n in range(start, start + 250)]
            await end_many(client, worker, names, failed())
        await advance(31 * DAY_MS)
        sizes: list[int] = []
        cursor = ""
        while cursor or not sizes:
            cursor = await storage.prune(QUEUE, cursor=cursor)
            sizes.append((await storage.stats(QUEUE)).dead)
        assert sizes == [300, 100, 0]

    async def test_stages_and_writes_whose_time_is_over_leave_nothing(
        self, storage: Storage, advance: Advance, dump: Dump
    ) -> None:
        loose, committed = ContractWriter(storage, "loose", ttl_ms=40), ContractWriter(storage)
        for n in range(50):
            await loose.stage(a_job(f"{n}"))
        await committed.stage(a_job("x"))
        await committed.commit(keep_ms=40)
        await publish_all(storage)
        await storage.purge(QUEUE, JobState.QUEUED, ["x"])
        await outlast(storage, advance, 40)
        await prune_all(storage)
        named = [key for key in await dump() if "loose" in key or WRITE in key]
        assert named == []

    async def test_what_is_staged_or_committed_is_spared(
        self, storage: Storage, advance: Advance
    ) -> None:
        loose, committed = ContractWriter(storage, "loose"), ContractWriter(storage)
        await loose.stage(a_job("a"), ttl_ms=DAY_MS)
        await committed.stage(a_job("b"), ttl_ms=40)
        await committed.commit()
        await outlast(storage, advance, 40)
        await prune_all(storage)
        await loose.commit()
        assert await publish_all(storage) == 2

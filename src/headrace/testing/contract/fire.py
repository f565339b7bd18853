"""Contract of ``fire``: an occurrence brings one job, whatever is repeated (G13)."""

from __future__ import annotations

import anyio
import pytest

from headrace.storage import (
    BATCH_LIMIT,
    FIRED_TTL_MS,
    EnqueueOutcome,
    JobState,
    Storage,
)
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.schedule_steps import (
    LATER_MS,
    NEIGHBOUR,
    STRANGE_ID,
    an_occurrence,
    deletion,
    fire,
    put,
    write,
)
from headrace.testing.contract.steps import (
    DAY_MS,
    MINUTE_MS,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    cancelled,
    completed,
    failed,
    ids,
    record_of,
    state_of,
)

FATES = ["waits", "completed", "not kept", "failed", "cancelled", "purged", "redriven and not kept"]


async def meet(fate: str, storage: Storage, worker: ContractIncarnation, job_id: str) -> None:
    """Let something become of a job."""
    if fate == "waits":
        return
    job = await worker.claim_one()
    if fate == "redriven and not kept":
        assert await worker.settle(job, failed())
        assert await storage.redrive(QUEUE, [job_id]) == 1
        job = await worker.claim_one()
    outcome = {
        "completed": completed(),
        "not kept": completed(keep_ms=0),
        "failed": failed(),
        "cancelled": cancelled(),
        "purged": failed(),
    }.get(fate, completed(keep_ms=0))
    assert await worker.settle(job, outcome)
    if fate == "purged":
        assert await storage.purge(QUEUE, JobState.FAILED, [job_id]) == 1


class FireContract(Contract):
    """Tests of ``fire``."""

    async def test_an_occurrences_job_is_stored_as_any_is(
        self, storage: Storage, worker: ContractIncarnation, advance: Advance
    ) -> None:
        payload = b"\x00\xff" * 1_000
        occurrence = an_occurrence(
            5, payload=payload, priority=9, lane="gpu", options=b'{"tags":[]}'
        )
        now_ms = await advance(0)
        assert await fire(storage, occurrence) == ["queued"]
        assert await storage.queues() == [QUEUE]
        [job] = await worker.claim(slots={"gpu": 1})
        assert (job.id, job.payload, job.options) == ("s:5", payload, b'{"tags":[]}')
        record = await record_of(storage, "s:5")
        assert (record.created_ms, record.task, record.priority) == (now_ms, "send", 9)
        assert (await storage.stats(QUEUE)).active == 1

    async def test_an_occurrences_job_may_start_later(
        self, storage: Storage, worker: ContractIncarnation, advance: Advance
    ) -> None:
        assert await fire(storage, an_occurrence(5, delay_ms=MINUTE_MS)) == ["scheduled"]
        assert await worker.claim() == []
        await advance(MINUTE_MS)
        assert ids(await worker.claim()) == ["s:5"]

    async def test_a_worker_that_waits_is_woken(
        self, storage: Storage, worker: ContractIncarnation
    ) -> None:
        waiter = storage.open_waiter(QUEUE, worker.name, "default")
        assert await fire(storage, an_occurrence(5)) == ["queued"]
        assert await waiter.wait(2)
        await waiter.aclose()

    @pytest.mark.parametrize("fate", FATES)
    async def test_an_occurrence_is_not_fired_twice_whatever_became_of_its_job(
        self, storage: Storage, worker: ContractIncarnation, dump: Dump, fate: str
    ) -> None:
        assert await fire(storage, an_occurrence(5)) == ["queued"]
        await meet(fate, storage, worker, "s:5")
        before = await dump()
        assert await fire(storage, an_occurrence(5)) == ["duplicate"]
        assert await dump() == before

    async def test_what_is_not_later_than_the_last_is_a_duplicate(
        self, storage: Storage, worker: ContractIncarnation
    ) -> None:
        assert await fire(storage, an_occurrence(50)) == ["queued"]
        occurrences = [an_occurrence(instant_ms) for instant_ms in (49, 50, 1, 51, 50, 52)]
        assert await fire(storage, *occurrences) == [
            *["duplicate"] * 3,
            "queued",
            "duplicate",
            "queued",
        ]
        assert ids(await worker.claim()) == ["s:50", "s:51", "s:52"]
        assert await state_of(storage, "s:49") is None

    async def test_schedules_don_t_count_for_each_other(self, storage: Storage) -> None:
        assert await fire(storage, an_occurrence(50, "a")) == ["queued"]
        answers = await fire(
            storage, an_occurrence(40, "b"), an_occurrence(40, "a"), an_occurrence(41, STRANGE_ID)
        )
        assert answers == ["queued", "duplicate", "queued"]
        assert await fire(storage, an_occurrence(41, STRANGE_ID)) == ["duplicate"]

    async def test_queues_don_t_count_for_each_other(self, storage: Storage) -> None:
        await fire(storage, an_occurrence(50))
        for instant_ms, answer in ((40, "queued"), (60, "queued"), (60, "duplicate")):
            elsewhere = an_occurrence(instant_ms)
            assert await storage.fire("other", [elsewhere], until_ms=LATER_MS) == [answer]
        assert await fire(storage, an_occurrence(50), an_occurrence(55)) == ["duplicate", "queued"]
        assert await storage.queues() == [QUEUE, "other"]

    async def test_a_job_that_is_there_already_is_left_and_its_occurrence_counts_as_fired(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job("s:5", payload=b"by hand"))
        assert await fire(storage, an_occurrence(5)) == ["duplicate"]
        job = await worker.claim_one()
        assert job.payload == b"by hand"
        await worker.settle(job, completed(keep_ms=0))
        assert await fire(storage, an_occurrence(5), an_occurrence(4)) == ["duplicate"] * 2
        await client.enqueue(a_job("s:6"))
        await worker.settle(await worker.claim_one(), completed())
        assert await fire(storage, an_occurrence(6)) == ["completed"]
        assert await fire(storage, an_occurrence(6)) == ["duplicate"]
        assert await worker.claim() == []

    async def test_who_has_stood_still_fires_nothing(
        self, storage: Storage, dump: Dump, advance: Advance
    ) -> None:
        await fire(storage, an_occurrence(5))
        until_ms = await advance(0) + 10
        await advance(11)
        before = await dump()
        assert await fire(storage, an_occurrence(5), an_occurrence(6), until_ms=until_ms) is None
        assert await dump() == before
        assert await fire(storage, an_occurrence(6), until_ms=until_ms + 1) == ["queued"]

    @pytest.mark.parametrize("age_ms", [-MINUTE_MS, 0, 30 * DAY_MS])
    async def test_the_last_instant_is_kept_long_after_it_was_fired(
        self, storage: Storage, worker: ContractIncarnation, advance: Advance, age_ms: int
    ) -> None:
        # Of long ago is what is caught up with.
        fired = an_occurrence(await advance(0) - age_ms)
        assert await fire(storage, fired) == ["queued"]
        await worker.settle(await worker.claim_one(), completed(keep_ms=0))
        for n, ms in enumerate((1, FIRED_TTL_MS - 3, 1)):
            await advance(ms)
            await fire(storage, an_occurrence(n, f"other {n}"))
            await storage.take_schedules(limit=9, hold_ms=1)
            await storage.prune(QUEUE)
            assert await fire(storage, fired) == ["duplicate"]

    async def test_it_outlives_its_schedule_and_its_queue(
        self, storage: Storage, worker: ContractIncarnation
    ) -> None:
        await put(storage)
        await fire(storage, an_occurrence(5))
        await worker.settle(await worker.claim_one(), completed(keep_ms=0))
        assert await write(storage, deletion()) == [0]
        assert await fire(storage, an_occurrence(5)) == ["duplicate"]
        while await storage.delete_queue(QUEUE, is_forced=True):
            pass
        assert await storage.queues() == []
        assert await fire(storage, an_occurrence(5)) == ["duplicate"]
        assert await fire(storage, an_occurrence(6)) == ["queued"]

    async def test_as_many_are_fired_as_one_call_may_bring(
        self, storage: Storage, worker: ContractIncarnation
    ) -> None:
        occurrences = [an_occurrence(n // 2, f"{n % 2}") for n in range(BATCH_LIMIT)]
        assert await fire(storage, *occurrences) == ["queued"] * BATCH_LIMIT
        assert await fire(storage, *occurrences) == ["duplicate"] * BATCH_LIMIT
        assert ids(await worker.claim()) == [occurrence.job.id for occurrence in occurrences]

    async def test_schedulers_at_the_same_time_bring_one_job_of_each(
        self, storage: Storage, worker: ContractIncarnation
    ) -> None:
        occurrences = [an_occurrence(7, f"{n}") for n in range(10)]
        answers: list[list[EnqueueOutcome] | None] = []

        async def scheduler() -> None:
            answers.append(await fire(storage, *occurrences))

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(scheduler)
        assert sorted(filter(None, answers)) == [["duplicate"] * 10] * 4 + [["queued"] * 10]
        assert len(await worker.claim()) == 10

    async def test_another_tenants_don_t_count(self, storage: Storage) -> None:
        await fire(storage, an_occurrence(5))
        neighbour = storage.for_tenant(NEIGHBOUR)
        assert await fire(neighbour, an_occurrence(4)) == ["queued"]
        assert await fire(neighbour, an_occurrence(4)) == ["duplicate"]
        assert await state_of(storage, "s:4") is None
        await neighbour.aclose()

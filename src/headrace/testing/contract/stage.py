"""Contract of ``stage``: jobs are laid down once each, and are none before they are published."""

from __future__ import annotations

from typing import Any

import pytest

from headrace import StageLost
from headrace.storage import BATCH_LIMIT, CommitOutcome, JobRequest, JobState, Storage
from headrace.testing.contract.bulk_steps import ContractWriter, outlast, publish_all
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    DAY_MS,
    HOUR_MS,
    QUEUE,
    STATES,
    ContractClient,
    ContractIncarnation,
    a_job,
    ids,
    record_of,
    state_of,
)

SHORT_MS = 40
ASKING: dict[str, Any] = {
    "priority": 9,
    "lane": "process",
    "expires_at_ms": 4_000_000_000_000,
    "max_stalls": 7,
    "keep_ms": 12_345,
    "options": b'{"timeout_ms":5}',
}
PAYLOADS = [b"", b"[]", bytes(range(256)), b"x" * 1024 * 1024]


class StageContract(Contract):
    """Tests of ``stage``."""

    async def test_what_is_staged_is_no_job(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job("other"))
        before = await storage.stats(QUEUE)
        events = await storage.events(QUEUE)
        await ContractWriter(storage).stage(a_job("x"))
        assert await state_of(storage, "x") is None
        assert await storage.stats(QUEUE) == before
        assert await storage.events(QUEUE) == events
        for state in STATES:
            page = await storage.list_jobs(QUEUE, state, limit=9)
            assert [row.id for row in page.rows] == (["other"] * (state is JobState.QUEUED))
        assert ids(await worker.claim()) == ["other"]

    async def test_the_length_rises_with_each_call_that_appends(self, storage: Storage) -> None:
        writer = ContractWriter(storage)
        lengths = [await writer.stage(a_job(f"{n}")) for n in range(4)]
        assert lengths[0] > 0
        assert lengths == sorted(set(lengths))

    async def test_jobs_come_out_as_they_went_in(self, storage: Storage) -> None:
        writer = ContractWriter(storage)
        options = b'{"timeout_ms":5}'
        jobs = [a_job(f"{n}", payload) for n, payload in enumerate(PAYLOADS)]
        await writer.stage(*jobs, a_job("asking", **ASKING))
        await writer.commit()
        await publish_all(storage)
        records = [await record_of(storage, job.id) for job in jobs]
        assert [record.payload for record in records] == PAYLOADS
        asking = await record_of(storage, "asking")
        assert (asking.priority, asking.lane, asking.options) == (9, "process", options)
        assert asking.expires_ms == ASKING["expires_at_ms"]

    async def test_a_full_call_is_staged_and_published_at_once(self, storage: Storage) -> None:
        writer = ContractWriter(storage)
        await writer.stage(*(a_job(f"{n}") for n in range(BATCH_LIMIT)))
        await writer.commit()
        assert await storage.publish(QUEUE) == 0
        assert (await storage.stats(QUEUE)).queued == BATCH_LIMIT

    @pytest.mark.parametrize("known", [0, 1])
    async def test_a_staging_that_is_repeated_changes_nothing(
        self, storage: Storage, dump: Dump, known: int
    ) -> None:
        """The last one, and one before it that comes late."""
        writer = ContractWriter(storage)
        lengths = [0, await writer.stage(a_job("a"))]
        length = await writer.stage(a_job("b"))
        before = await dump()
        assert await writer.stage(a_job("b"), before=lengths[known]) == length
        assert await dump() == before
        await writer.commit()
        await publish_all(storage)
        assert (await storage.stats(QUEUE)).queued == 2

    @pytest.mark.parametrize("there", [0, 1])
    async def test_fewer_than_the_writer_knows_of_is_an_error(
        self, storage: Storage, client: ContractClient, dump: Dump, there: int
    ) -> None:
        await client.enqueue(a_job("other"))
        writer = ContractWriter(storage)
        for n in range(there):
            await writer.stage(a_job(f"{n}"))
        before = await dump()
        for jobs in ([a_job("x")], []):
            with pytest.raises(StageLost, match="t1"):
                await writer.stage(*jobs, before=1_000_000)
        assert await dump() == before

    async def test_a_stage_whose_time_is_over_is_lost(
        self, storage: Storage, advance: Advance
    ) -> None:
        writer = ContractWriter(storage, ttl_ms=SHORT_MS)
        await writer.stage(a_job("a"))
        await outlast(storage, advance, SHORT_MS)
        with pytest.raises(StageLost):
            await writer.stage(a_job("b"))
        with pytest.raises(StageLost):
            await writer.commit()

    async def test_one_of_the_same_token_begins_anew_after_that(
        self, storage: Storage, advance: Advance
    ) -> None:
        await ContractWriter(storage, ttl_ms=SHORT_MS).stage(a_job("a"))
        await outlast(storage, advance, SHORT_MS)
        again = ContractWriter(storage)
        await again.stage(a_job("b"))
        assert await again.commit() is CommitOutcome.COMMITTED
        await publish_all(storage)
        assert [await state_of(storage, "a"), await state_of(storage, "b")] == [None, "queued"]

    @pytest.mark.parametrize("how", ["appends", "repeats", "brings nothing"])
    async def test_every_call_gives_the_stage_its_time_anew(
        self, storage: Storage, advance: Advance, how: str
    ) -> None:
        writer = ContractWriter(storage)
        await writer.stage(a_job("a"), ttl_ms=SHORT_MS)
        match how:
            case "appends":
                await writer.stage(a_job("b"), ttl_ms=HOUR_MS)
            case "repeats":
                await writer.stage(a_job("a"), before=0, ttl_ms=HOUR_MS)
            case _:
                await writer.stage(ttl_ms=HOUR_MS)
        await outlast(storage, advance, SHORT_MS)
        assert await writer.commit() is CommitOutcome.COMMITTED

    async def test_a_call_without_jobs_makes_no_stage(
        self, storage: Storage, client: ContractClient, dump: Dump
    ) -> None:
        await client.enqueue(a_job("other"))
        before = await dump()
        assert await ContractWriter(storage).stage() == 0
        assert await dump() == before

    @pytest.mark.parametrize("jobs", [[], [a_job("b")]], ids=["nothing", "a job"])
    @pytest.mark.parametrize("is_repeat", [False, True])
    async def test_a_committed_stage_takes_no_more(
        self, storage: Storage, dump: Dump, jobs: list[JobRequest], *, is_repeat: bool
    ) -> None:
        writer = ContractWriter(storage)
        await writer.stage(a_job("a"))
        await writer.commit()
        before = await dump()
        with pytest.raises(StageLost):
            await writer.stage(*jobs, before=0 if is_repeat else None)
        assert await dump() == before
        await publish_all(storage)
        assert (await storage.stats(QUEUE)).queued == 1

    async def test_a_stage_is_of_one_queue_one_write_and_one_tenant(self, storage: Storage) -> None:
        neighbour = storage.for_tenant("neighbour")
        writer = ContractWriter(storage)
        others = [
            ContractWriter(storage, queue="other"),
            ContractWriter(storage, "other"),
            ContractWriter(neighbour),
        ]
        await writer.stage(a_job("x"))
        lengths = [await other.stage(a_job(f"{n}")) for n, other in enumerate(others)]
        assert lengths == [writer.stage_info.length] * 3
        assert [await other.discard() for other in others] == [1, 1, 1]
        assert await writer.commit() is CommitOutcome.COMMITTED
        await neighbour.aclose()

    async def test_a_delay_counts_from_when_it_is_published(
        self, storage: Storage, advance: Advance
    ) -> None:
        writer = ContractWriter(storage, ttl_ms=DAY_MS)
        await writer.stage(a_job("x", delay_ms=HOUR_MS))
        await writer.commit()
        now_ms = await advance(2 * HOUR_MS)
        await publish_all(storage)
        assert (await record_of(storage, "x")).due_ms == now_ms + HOUR_MS

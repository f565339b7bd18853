"""Contract of ``publish``: what is committed becomes jobs, a piece at a time, each of them once."""

from __future__ import annotations

import pytest

from headrace.storage import Storage
from headrace.testing.contract.bulk_steps import (
    ContractWriter,
    commit_stages,
    publish_all,
    report_of,
)
from headrace.testing.contract.fixtures import Contract, Dump
from headrace.testing.contract.steps import (
    ENDED,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    ids,
    state_of,
)


class PublishContract(Contract):
    """Tests of ``publish``."""

    async def test_jobs_come_in_the_order_of_commits_stages_and_calls(
        self, storage: Storage, worker: ContractIncarnation
    ) -> None:
        late, early = ContractWriter(storage, "late"), ContractWriter(storage, "early")
        beside = ContractWriter(storage, "late", name="t2")
        await late.stage(a_job("c"))
        await early.stage(a_job("a"))
        await beside.stage(a_job("e"), a_job("f"))
        await late.stage(a_job("d"))
        await early.stage(a_job("b"))
        await early.commit()
        await commit_stages(storage, late.stage_info, beside.stage_info, write_id="late")
        await publish_all(storage)
        assert ids(await worker.claim()) == ["a", "b", "c", "d", "e", "f"]

    async def test_a_call_publishes_what_a_call_has_staged(self, storage: Storage) -> None:
        first, second = ContractWriter(storage, name="t1"), ContractWriter(storage, name="t2")
        await first.stage(a_job("a"), a_job("b"))
        await first.stage(a_job("c"))
        await second.stage(a_job("d"))
        await commit_stages(storage, first.stage_info, second.stage_info)
        left, queued, reports = [], [], []
        for _ in range(4):
            left.append(await storage.publish(QUEUE))
            queued.append((await storage.stats(QUEUE)).queued)
            info = await report_of(storage)
            reports.append((info.stages_left, info.jobs, info.added))
        assert left == [2, 1, 0, 0]
        assert queued == [2, 3, 4, 4]
        assert reports == [(2, 4, 2), (1, 4, 3), (0, 4, 4), (0, 4, 4)]

    async def test_without_anything_committed_it_changes_nothing(
        self, storage: Storage, client: ContractClient, dump: Dump
    ) -> None:
        assert await storage.publish("never-was") == 0
        await client.enqueue(a_job())
        await ContractWriter(storage).stage(a_job("x"))
        before = await dump()
        assert await storage.publish(QUEUE) == 0
        assert await dump() == before

    async def test_an_id_that_is_there_is_a_duplicate_even_if_it_was_drawn(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await client.enqueue(a_job("x", b"first"))
        writer = ContractWriter(storage)
        await writer.stage(a_job("x", b"second", is_new_id=True), a_job("y", is_new_id=True))
        await writer.stage(a_job("y", is_new_id=True))
        await writer.commit()
        await publish_all(storage)
        record = await storage.get(QUEUE, "x")
        assert record is not None
        assert record.payload == b"first"
        assert (await storage.stats(QUEUE)).queued == 2
        info = await report_of(storage)
        assert (info.jobs, info.added) == (3, 1)

    @pytest.mark.parametrize("replaces_ended", [True, False], ids=["replacing", "staying"])
    @pytest.mark.parametrize("beside", [0, 1])
    async def test_ended_records_count_as_they_always_do(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        beside: int,
        *,
        replaces_ended: bool,
    ) -> None:
        for state in ENDED:
            await bring(state, client, worker, state.value)
        writer = ContractWriter(storage)
        jobs = [a_job(state.value, replaces_ended=replaces_ended) for state in ENDED]
        await writer.stage(*jobs, *[a_job("beside", priority=9)] * beside)
        await writer.commit()
        await publish_all(storage)
        states = [await state_of(storage, state.value) for state in ENDED]
        kept = ["completed", "failed", "cancelled"]
        assert states == (["completed", "queued", "queued"] if replaces_ended else kept)
        assert (await report_of(storage)).added == 2 * replaces_ended + beside

    async def test_delayed_jobs_are_scheduled_and_count_as_added(self, storage: Storage) -> None:
        writer = ContractWriter(storage)
        await writer.stage(a_job("now"), a_job("later", delay_ms=60_000))
        await writer.commit()
        await publish_all(storage)
        stats = await storage.stats(QUEUE)
        assert (stats.queued, stats.scheduled) == (1, 1)
        assert (await report_of(storage)).added == 2

    async def test_it_tells_what_happened_and_wakes_who_waits(
        self, storage: Storage, worker: ContractIncarnation
    ) -> None:
        waiter = storage.open_waiter(QUEUE, worker.name, "default")
        while await waiter.wait(0):
            pass
        writer = ContractWriter(storage)
        await writer.stage(a_job("x"))
        await writer.commit()
        seen = (await storage.events(QUEUE)).last_id
        await publish_all(storage)
        events = (await storage.events(QUEUE, after=seen or "0")).events
        assert [(event.kind, event.job_id) for event in events] == [("queued", "x")]
        assert await waiter.wait(5)
        await waiter.aclose()
        assert await storage.queues() == [QUEUE]

    async def test_one_write_is_published_and_another_is_not_touched(
        self, storage: Storage
    ) -> None:
        loose = ContractWriter(storage, "loose")
        elsewhere = ContractWriter(storage, "elsewhere", queue="other")
        writer = ContractWriter(storage)
        for one in (loose, elsewhere, writer):
            await one.stage(a_job("x"))
        await elsewhere.commit()
        await writer.commit()
        await publish_all(storage)
        assert (await storage.stats("other")).queued == 0
        assert await loose.discard() == 1
        await storage.publish("other")
        assert (await storage.stats("other")).queued == 1

"""Contract of successors: what is asked for while a job of its id is active runs after it."""

from __future__ import annotations

import pytest

from headrace.storage import (
    CancelOutcome,
    End,
    EnqueueOutcome,
    JobEventKind,
    JobRow,
    JobState,
    Outcome,
    Settlement,
    Storage,
    Update,
    UpdateRunAt,
)
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    HOUR_MS,
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
    retried,
    started,
    state_of,
)
from headrace.testing.contract.updates import (
    ALWAYS,
    BY_PARTS,
    IF_EARLIER,
    IF_LATER,
    NEVER,
    NEW,
    NEW_DATA,
    NEW_RETRY,
    NOTHING,
    OLD,
    OLD_DATA,
    OLD_RETRY,
    ONLY_DATA,
    ONLY_RETRY,
    an_update,
    only_at,
    parts_of,
)
from headrace.testing.contract.watch import next_end, open_channel

UPDATED, DUPLICATE = EnqueueOutcome.UPDATED, EnqueueOutcome.DUPLICATE
CANCELLED, REQUESTED = CancelOutcome.CANCELLED, CancelOutcome.REQUESTED

ENDING: dict[str, Outcome] = {
    "completed": completed(),
    "completed and not kept": completed(keep_ms=0),
    "failed": failed(),
    "cancelled": cancelled(),
}
"""What ends an active job, by its attempt's outcome."""


async def blocked(storage: Storage) -> list[JobRow]:
    """Return the jobs that are blocked."""
    return (await storage.list_jobs(QUEUE, JobState.BLOCKED, limit=100)).rows


class SuccessorsContract(Contract):
    """Tests of what is asked for while a job of its id is active."""

    @pytest.mark.parametrize("delay_ms", [None, -HOUR_MS, 0, HOUR_MS])
    async def test_an_update_of_an_active_job_is_blocked_whatever_its_time(
        self,
        *,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
        advance: Advance,
        delay_ms: int | None,
    ) -> None:
        # BC-29, BC-30.
        now = await advance(0)
        job = await started(client, worker, **OLD)
        before = await record_of(storage)
        run_at_ms = 0 if delay_ms is None else now + delay_ms
        assert await client.enqueue(an_update(run_at_ms=run_at_ms, **NEW)) == [UPDATED]
        assert await other.claim() == []
        await advance(2 * HOUR_MS)
        assert await other.claim() == []
        assert await client.enqueue(a_job()) == [DUPLICATE]
        record = await record_of(storage)
        assert (record.has_next, before.has_next) == (True, False)
        assert (record.state, parts_of(record)) == (JobState.ACTIVE, (OLD_DATA, OLD_RETRY))
        assert await worker.settle(job, completed())
        assert ids(await other.claim()) == ["x"]

    async def test_a_blocked_job_is_counted_and_listed(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        now = await advance(0)
        for job_id in ("b", "a"):
            await started(client, worker, job_id)
        assert await client.enqueue(an_update(Update(), "a", priority=9)) == [UPDATED]
        await advance(1)
        await client.enqueue(an_update(Update(), "b", delay_ms=HOUR_MS, task="resend"))
        stats = await storage.stats(QUEUE)
        assert (stats.blocked, stats.active, stats.queued, stats.scheduled) == (2, 2, 0, 0)
        assert stats.enqueued == 2
        first, last = await blocked(storage)
        assert (first.id, first.task, first.priority, first.due_ms) == ("a", "send", 9, 0)
        assert (last.id, last.task, last.priority) == ("b", "resend", 5)
        assert (last.created_ms, last.due_ms) == (now + 1, now + 1 + HOUR_MS)
        assert (last.state, last.starts, last.incarnation) == (JobState.BLOCKED, 0, "")
        page = await storage.list_jobs(QUEUE, JobState.BLOCKED, limit=1)
        assert [row.id for row in page.rows] == ["a"]
        rest = await storage.list_jobs(QUEUE, JobState.BLOCKED, cursor=page.cursor, limit=9)
        assert ([row.id for row in rest.rows], rest.cursor) == (["b"], "")
        assert [row.id for row in (await storage.list_jobs(QUEUE, JobState.ACTIVE)).rows] != []

    @pytest.mark.parametrize("parts", BY_PARTS)
    @pytest.mark.parametrize("ending", ENDING)
    async def test_it_enters_in_the_step_that_ends_the_active_one(
        self,
        *,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
        advance: Advance,
        ending: str,
        parts: str,
    ) -> None:
        update, data, retry = BY_PARTS[parts]
        job = await started(client, worker, **OLD)
        created_ms = await advance(1)
        await client.enqueue(an_update(update, **NEW))
        assert await worker.settle(job, ENDING[ending])
        record = await record_of(storage)
        assert (record.state, parts_of(record)) == (JobState.QUEUED, (data, retry))
        assert (record.starts, record.failures, record.errors) == (0, 0, [])
        assert (record.created_ms, record.has_next) == (created_ms, False)
        assert (record.result, record.reason, record.incarnation) == (None, "", "")
        stats = await storage.stats(QUEUE)
        fail_jobs = int(ending == "failed")
        counts = (stats.blocked, stats.queued, stats.active, stats.history, stats.dead)
        assert counts == (0, 1 + fail_jobs, 0, 0, 0)
        assert stats.enqueued == 2 + fail_jobs
        assert stats.completed + stats.failed + stats.cancelled == 1
        [again] = [claimed for claimed in await other.claim() if claimed.id == "x"]
        assert (again.id, again.claim.epoch, again.payload) == ("x", 1, data[1])
        assert not await worker.settle(job, completed(b"late"))
        assert await other.settle(again, completed(b"2"))
        assert (await record_of(storage)).result == b"2"

    @pytest.mark.parametrize("run_at", list(UpdateRunAt))
    async def test_one_whose_time_lies_ahead_waits_for_it(
        self,
        *,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
        advance: Advance,
        run_at: UpdateRunAt,
    ) -> None:
        job = await started(client, worker)
        due_ms = await advance(0) + HOUR_MS
        update = Update(run_at=run_at)
        await client.enqueue(an_update(update, delay_ms=HOUR_MS, expires_in_ms=2 * HOUR_MS))
        await worker.settle(job, completed())
        record = await record_of(storage)
        if run_at is NEVER:
            assert (record.state, record.due_ms, record.expires_ms) == (JobState.QUEUED, 0, 0)
            return
        assert (record.state, record.due_ms) == (JobState.SCHEDULED, due_ms)
        assert record.expires_ms == due_ms + HOUR_MS
        assert await other.claim() == []
        await advance(HOUR_MS)
        assert ids(await other.claim()) == ["x"]

    async def test_one_whose_time_has_come_meanwhile_is_ready_at_the_tail(
        self, client: ContractClient, worker: ContractIncarnation, advance: Advance
    ) -> None:
        job = await started(client, worker)
        await client.enqueue(an_update(delay_ms=MINUTE_MS), a_job("y"))
        await advance(MINUTE_MS)
        await worker.settle(job, completed())
        assert ids(await worker.claim()) == ["y", "x"]

    async def test_it_waits_in_the_lane_and_tier_that_were_asked(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        await client.enqueue(an_update(lane="process", priority=9), a_job("y", lane="process"))
        await worker.settle(job, completed())
        assert await worker.claim() == []
        assert ids(await worker.claim(slots={"process": 9})) == ["x", "y"]

    @pytest.mark.parametrize("big", [True, False])
    async def test_payloads_of_any_size_are_copied_or_come_with_it(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, *, big: bool
    ) -> None:
        size = 5_000 if big else 5
        jobs = [await started(client, worker, name, payload=b"a" * size) for name in ("x", "y")]
        await client.enqueue(
            an_update(ONLY_RETRY, "x"), an_update(Update(), "y", payload=b"b" * size)
        )
        for job in jobs:
            await worker.settle(job, completed())
        assert (await record_of(storage, "x")).payload == b"a" * size
        assert (await record_of(storage, "y")).payload == b"b" * size
        assert {job.payload for job in await worker.claim()} == {b"a" * size, b"b" * size}

    async def test_the_newest_update_wins_by_its_parts(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker, **OLD)
        newest = {**NEW, "task": "newest"}
        await client.enqueue(an_update(ONLY_DATA, **NEW))
        await client.enqueue(an_update(ONLY_RETRY, **NEW), an_update(NOTHING, **newest))
        assert len(await blocked(storage)) == 1
        stats = await storage.stats(QUEUE)
        assert (stats.blocked, stats.enqueued) == (1, 1)
        await worker.settle(job, completed())
        assert parts_of(await record_of(storage)) == (NEW_DATA, NEW_RETRY)

    @pytest.mark.parametrize(
        ("first", "second", "waits_ms"),
        [
            ((ALWAYS, 2), (ALWAYS, 1), 1), ((ALWAYS, 2), (ALWAYS, 0), 0),
            ((ALWAYS, 2), (NEVER, 1), 2), ((ALWAYS, 2), (IF_LATER, 1), 2),
            ((ALWAYS, 2), (IF_LATER, 3), 3), ((ALWAYS, 2), (IF_EARLIER, 1), 1),
            ((ALWAYS, 2), (IF_EARLIER, 3), 2), ((ALWAYS, 0), (IF_LATER, 1), 1),
            ((ALWAYS, 0), (IF_EARLIER, 1), 0), ((NEVER, 2), (IF_EARLIER, 1), 1),
            ((NEVER, 2), (IF_LATER, 1), 1), ((IF_LATER, 2), (NEVER, 1), 2),
            ((IF_EARLIER, 2), (IF_EARLIER, 1), 1), ((NEVER, 2), (NEVER, 1), 0),
        ],
    )  # fmt: skip
    async def test_the_time_of_a_blocked_job_is_set_as_asked(
        self,
        *,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        first: tuple[UpdateRunAt, int],
        second: tuple[UpdateRunAt, int],
        waits_ms: int,
    ) -> None:
        now = await advance(0)
        job = await started(client, worker)
        for run_at, hours in (first, second):
            assert await client.enqueue(an_update(only_at(run_at), delay_ms=hours * HOUR_MS)) == [
                UPDATED
            ]
        await worker.settle(job, completed())
        due_ms = now + waits_ms * HOUR_MS if waits_ms else 0
        assert (await record_of(storage)).due_ms == due_ms

    async def test_a_cancel_of_the_id_ends_the_successor_with_the_active_one(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        async with open_channel(storage) as channel:
            await client.enqueue(an_update(channel=channel.name))
            assert await storage.cancel(QUEUE, ["x"]) == [REQUESTED]
            assert await next_end(channel) == End(QUEUE, "x", JobState.CANCELLED, reason="next")
        assert (await record_of(storage)).has_next is False
        stats = await storage.stats(QUEUE)
        assert (stats.blocked, stats.active, stats.cancelled) == (0, 1, 0)
        assert worker.beat().cancel_ids == ["x"]
        await worker.settle(job, cancelled())
        assert await state_of(storage) is JobState.CANCELLED
        assert await worker.claim() == []

    async def test_the_successor_alone_is_cancelled_where_that_is_asked(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        async with open_channel(storage) as channel:
            await client.enqueue(an_update(channel=channel.name, payload=b"." * 1_000))
            ids_asked = ["x", "x", "nobody"]
            verdicts = await storage.cancel(QUEUE, ids_asked, only_next=True)
            assert verdicts == [CANCELLED, CancelOutcome.NOT_FOUND, CancelOutcome.NOT_FOUND]
            assert await next_end(channel) == End(QUEUE, "x", JobState.CANCELLED, reason="next")
        record = await record_of(storage)
        assert (record.state, record.has_next) == (JobState.ACTIVE, False)
        assert record.cancel_requested is False
        assert worker.beat().cancel_ids == []
        await worker.settle(job, completed())
        assert await state_of(storage) is JobState.COMPLETED
        assert (await storage.stats(QUEUE)).cancelled == 0

    @pytest.mark.parametrize("state", [JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED])
    async def test_a_cancel_of_a_successor_that_is_not_there_changes_nothing(
        self,
        *,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        dump: Dump,
        state: JobState,
    ) -> None:
        await client.enqueue(a_job())
        if state is not JobState.QUEUED:
            job = await worker.claim_one()
            if state is JobState.COMPLETED:
                await worker.settle(job, completed())
        before = await dump()
        verdicts = await storage.cancel(QUEUE, ["x"], only_next=True)
        assert verdicts == [CancelOutcome.NOT_FOUND]
        assert await dump() == before

    async def test_after_a_cancel_another_may_be_blocked(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        await client.enqueue(an_update(Update(reset_counts=True), payload=b"1"))
        await storage.cancel(QUEUE, ["x"], only_next=True)
        await client.enqueue(an_update(only_at(NEVER), payload=b"2"))
        await worker.settle(job, retried())
        record = await record_of(storage)
        assert (record.payload, record.failures) == (b"[]", 1)

    async def test_who_waits_hears_of_the_end_of_its_own_job(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        async with open_channel(storage) as first, open_channel(storage) as second:
            await storage.watch(QUEUE, ["x"], channel=first.name)
            await client.enqueue(an_update(channel=second.name))
            await worker.settle(job, completed(b"1"))
            assert (await next_end(first)).result == b"1"
            await worker.settle(await worker.claim_one(), completed(b"2"))
            assert (await next_end(second)).result == b"2"

    async def test_who_begins_to_watch_then_hears_of_the_successors_end(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        await client.enqueue(an_update())
        async with open_channel(storage) as channel:
            [end] = await storage.watch(QUEUE, ["x"], channel=channel.name)
            assert end.state is JobState.ACTIVE
            await worker.settle(job, completed(b"1"))
            await worker.settle(await worker.claim_one(), completed(b"2"))
            assert (await next_end(channel)).result == b"2"

    async def test_what_happened_is_told(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        now = await advance(0)
        job = await started(client, worker)
        await client.enqueue(an_update(task="resend"), an_update(task="resend"))
        await worker.settle(job, completed())
        job = await worker.claim_one()
        await client.enqueue(an_update(task="send", delay_ms=HOUR_MS))
        await storage.cancel(QUEUE, ["x"], only_next=True)
        await client.enqueue(an_update(task="send", delay_ms=HOUR_MS))
        await worker.settle(job, failed())
        kind = JobEventKind
        events = (await storage.events(QUEUE)).events
        told = [
            (event.kind, event.task, event.start, event.detail, event.due_ms, event.created_ms)
            for event in events
            if event.kind.is_of_job and event.kind is not kind.ACTIVE
        ]
        assert told == [
            (kind.QUEUED, "send", 0, "", 0, 0),
            (kind.BLOCKED, "resend", 0, "", 0, 0),
            (kind.BLOCKED, "resend", 0, "", 0, 0),
            (kind.COMPLETED, "send", 1, "", 0, now),
            (kind.QUEUED, "resend", 0, "next", 0, 0),
            (kind.BLOCKED, "send", 0, "", 0, 0),
            (kind.CANCELLED, "send", 0, "next", 0, now),
            (kind.BLOCKED, "send", 0, "", 0, 0),
            (kind.FAILED, "resend", 1, "exhausted", 0, now),
            (kind.SCHEDULED, "send", 0, "next", now + HOUR_MS, 0),
        ]

    async def test_a_batch_that_ends_many_jobs_lets_each_successor_enter(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        jobs = [await started(client, worker, f"{n}") for n in range(20)]
        await client.enqueue(*(an_update(Update(), job.id) for job in jobs[::2]))
        outcomes = [completed(), failed(), retried(0), cancelled()]
        for number, job in enumerate(jobs):
            assert await worker.settle(job, outcomes[number % 4])
        stats = await storage.stats(QUEUE)
        assert (stats.blocked, stats.active) == (0, 0)
        assert {job.id for job in await worker.claim()} == {job.id for job in jobs[::2]}

    async def test_an_outcome_that_comes_twice_in_a_call_is_stale_once_the_successor_is_in(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        await client.enqueue(an_update())
        settlement = Settlement(job.id, job.claim, 7, completed())
        assert await worker.settle_all(settlement, settlement) == [True, False]
        assert await state_of(storage) is JobState.QUEUED

    async def test_a_successor_is_of_no_record_that_an_operator_ends(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await started(client, worker)
        await client.enqueue(an_update())
        assert await storage.purge(QUEUE, JobState.BLOCKED, ["x"]) == 0
        assert await storage.purge(QUEUE, JobState.ACTIVE, ["x"]) == 0
        assert await storage.redrive(QUEUE, ["x"]) == 0
        assert await storage.delete_queue(QUEUE, is_forced=True) is None
        assert (await storage.stats(QUEUE)).blocked == 1

    async def test_a_repeated_update_of_an_active_job_changes_nothing_more(
        self, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        await started(client, worker)
        asked = an_update(delay_ms=5, payload=b"." * 1_000)
        assert await client.enqueue(asked, number=2) == [UPDATED]
        before = await dump()
        assert await client.enqueue(asked, number=2) == [UPDATED]
        assert await dump() == before

"""Contract of ``enqueue`` with an update, of a job that waits or has ended."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.storage import (
    EnqueueOutcome,
    JobEventKind,
    JobRecord,
    JobRequest,
    JobState,
    Storage,
    Update,
    UpdateRunAt,
    join_options,
)
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    ENDED,
    HOUR_MS,
    MINUTE_MS,
    QUEUE,
    WAITING,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    completed,
    ids,
    record_of,
    retried,
    snoozed,
    state_of,
    unknown_task,
)
from headrace.testing.contract.watch import next_end, open_channel

QUEUED, SCHEDULED = EnqueueOutcome.QUEUED, EnqueueOutcome.SCHEDULED
UPDATED, DUPLICATE = EnqueueOutcome.UPDATED, EnqueueOutcome.DUPLICATE

NEVER, ALWAYS = UpdateRunAt.NEVER, UpdateRunAt.ALWAYS
IF_LATER, IF_EARLIER = UpdateRunAt.IF_LATER, UpdateRunAt.IF_EARLIER

BY_DEFAULT = Update()
NOTHING = Update(data=False, run_at=NEVER, retry=False)
ONLY_DATA = Update(run_at=NEVER, retry=False)
ONLY_RETRY = Update(data=False, run_at=NEVER)
ONLY_COUNTS = Update(data=False, run_at=NEVER, retry=False, reset_counts=True)

OLD: dict[str, Any] = {
    "payload": b"old" * 100,
    "priority": 4,
    "keep_ms": 1_000,
    "max_stalls": 4,
    "options": join_options(b'{"timeout_ms":1}', b'{"max_attempts":1}'),
    "on_failed": "mourn",
}
NEW: dict[str, Any] = {
    "task": "resend",
    "payload": b"new" * 200,
    "priority": 6,
    "keep_ms": 2_000,
    "max_stalls": 6,
    "options": join_options(b'{"timeout_ms":2}', b'{"max_attempts":2}'),
    "on_failed": "bewail",
}


def only_at(run_at: UpdateRunAt) -> Update:
    """Return an update of nothing but the time."""
    return Update(data=False, run_at=run_at, retry=False)


def an_update(update: Update = BY_DEFAULT, job_id: str = "x", **asked: Any) -> JobRequest:
    """Return a job that changes the one of its id."""
    asked = {"task": "send", "payload": b"[]", **asked}
    return JobRequest(id=job_id, queue=QUEUE, update=update, **asked)


def parts_of(record: JobRecord) -> tuple[tuple[Any, ...], bytes]:
    """Return what is a job's data, and the options about its retries."""
    data, _, retry = record.options.partition(b"\n")
    return (record.task, record.payload, record.priority, data, record.on_failed), retry


OLD_DATA = ("send", OLD["payload"], 4, b'{"timeout_ms":1}', "mourn")
NEW_DATA = ("resend", NEW["payload"], 6, b'{"timeout_ms":2}', "bewail")
OLD_RETRY, NEW_RETRY = b'{"max_attempts":1}', b'{"max_attempts":2}'

BY_PARTS = {
    "nothing": (NOTHING, OLD_DATA, OLD_RETRY),
    "data": (ONLY_DATA, NEW_DATA, OLD_RETRY),
    "retry": (ONLY_RETRY, OLD_DATA, NEW_RETRY),
    "both": (Update(run_at=NEVER), NEW_DATA, NEW_RETRY),
}
"""Which parts an update names, and what a job has then."""


class UpdatesContract(Contract):
    """Tests of ``enqueue`` with an update, but for active jobs."""

    async def test_a_call_changes_jobs_that_it_has_brought_itself(
        self, storage: Storage, client: ContractClient
    ) -> None:
        asked = [a_job("a"), a_job("b"), an_update(job_id="b", **NEW), a_job("b")]
        asked += [an_update(job_id="a", **NEW), a_job("a")]
        outcomes = [QUEUED, QUEUED, UPDATED, DUPLICATE, UPDATED, DUPLICATE]
        assert await client.enqueue(*asked) == outcomes
        for job_id in ("a", "b"):
            record = await storage.get(QUEUE, job_id)
            assert record is not None
            assert parts_of(record) == (NEW_DATA, NEW_RETRY)

    @pytest.mark.parametrize("delay_ms", [0, MINUTE_MS])
    async def test_an_update_of_an_unknown_id_is_a_new_job(
        self, storage: Storage, client: ContractClient, delay_ms: int
    ) -> None:
        asked = an_update(NOTHING, delay_ms=delay_ms, **NEW)
        assert await client.enqueue(asked) == [SCHEDULED if delay_ms else QUEUED]
        assert parts_of(await record_of(storage)) == (NEW_DATA, NEW_RETRY)

    @pytest.mark.parametrize("state", ENDED)
    async def test_an_ended_job_makes_room_whatever_its_end(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, state: JobState
    ) -> None:
        # BC-24, the other choice, and BC-25.
        await bring(state, client, worker, **OLD)
        assert await client.enqueue(an_update(NOTHING, **NEW)) == [QUEUED]
        record = await record_of(storage)
        assert parts_of(record) == (NEW_DATA, NEW_RETRY)
        assert (record.state, record.starts, record.errors) == (JobState.QUEUED, 0, [])
        stats = await storage.stats(QUEUE)
        fail_jobs = int(state is JobState.FAILED)
        assert (stats.history, stats.dead) == (0, 0)
        assert (stats.queued, stats.enqueued) == (1 + fail_jobs, 2 + fail_jobs)

    @pytest.mark.parametrize("state", WAITING)
    @pytest.mark.parametrize("parts", BY_PARTS)
    async def test_a_waiting_job_is_changed_by_the_parts_that_are_named(
        self,
        *,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        state: JobState,
        parts: str,
    ) -> None:
        update, data, retry = BY_PARTS[parts]
        await bring(state, client, worker, **OLD)
        before = await record_of(storage)
        assert await client.enqueue(an_update(update, delay_ms=HOUR_MS, **NEW)) == [UPDATED]
        record = await record_of(storage)
        assert parts_of(record) == (data, retry)
        assert (record.state, record.due_ms) == (state, before.due_ms)
        assert (record.created_ms, record.starts) == (before.created_ms, before.starts)
        assert (record.failures, len(record.errors)) == (before.failures, len(before.errors))
        stats = await storage.stats(QUEUE)
        assert (stats.queued + stats.scheduled + stats.retrying, stats.enqueued) == (1, 1)

    async def test_a_changed_job_runs_with_what_was_asked_last(
        self, client: ContractClient, other: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job(**OLD))
        await client.enqueue(an_update(lane="process", **NEW))
        assert await other.claim() == []
        [job] = await other.claim(slots={"process": 1})
        assert (job.task, job.payload, job.options) == ("resend", NEW["payload"], NEW["options"])

    @pytest.mark.parametrize("is_data", [True, False])
    async def test_what_is_kept_of_its_end_is_data(
        self, storage: Storage, client: ContractClient, *, is_data: bool
    ) -> None:
        await client.enqueue(a_job(keep_ms=1_000))
        update = Update(data=is_data, run_at=NEVER)
        await client.enqueue(an_update(update, keep_ms=2_000))
        assert (await record_of(storage)).keep_ms == (2_000 if is_data else 1_000)

    @pytest.mark.parametrize("is_retry", [True, False])
    async def test_how_many_deaths_it_outlives_is_of_its_retries(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        *,
        is_retry: bool,
    ) -> None:
        await client.enqueue(a_job(max_stalls=1))
        await client.enqueue(an_update(Update(run_at=NEVER, retry=is_retry), max_stalls=2))
        await worker.claim_one()
        await worker.die()
        assert await state_of(storage) is (JobState.QUEUED if is_retry else JobState.FAILED)

    @pytest.mark.parametrize("sizes", [(1, 1_000), (1_000, 1), (1_000, 2_000)])
    async def test_payloads_of_any_size_take_each_others_place(
        self, storage: Storage, client: ContractClient, sizes: tuple[int, int]
    ) -> None:
        first, last = sizes
        await client.enqueue(a_job(payload=b"a" * first))
        await client.enqueue(an_update(payload=b"b" * last))
        assert (await record_of(storage)).payload == b"b" * last

    async def test_counts_begin_anew_where_that_is_asked(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await bring(JobState.ACTIVE, client, worker)
        assert job is not None
        await worker.settle(job, retried(0))
        await worker.settle(await worker.claim_one(), unknown_task(MINUTE_MS))
        before = await record_of(storage)
        assert await client.enqueue(an_update(ONLY_COUNTS)) == [UPDATED]
        record = await record_of(storage)
        assert (record.failures, record.stalls, record.errors) == (0, 0, [])
        assert (before.put_back is None, record.put_back) == (False, None)
        assert (record.starts, record.state, record.due_ms) == (2, before.state, before.due_ms)

    @pytest.mark.parametrize("run_at", list(UpdateRunAt))
    @pytest.mark.parametrize("asked_ms", [0, MINUTE_MS, 2 * MINUTE_MS, 3 * MINUTE_MS])
    async def test_the_time_of_a_job_that_waits_for_one_is_set_as_asked(
        self,
        *,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        run_at: UpdateRunAt,
        asked_ms: int,
    ) -> None:
        now = await advance(0)
        await client.enqueue(a_job("x", delay_ms=2 * MINUTE_MS), a_job("y", delay_ms=2 * MINUTE_MS))
        asked = [
            an_update(only_at(run_at), delay_ms=asked_ms),
            an_update(only_at(run_at), "y", run_at_ms=now + asked_ms),
        ]
        assert await client.enqueue(*asked) == [UPDATED] * 2
        is_set = run_at is ALWAYS or {
            IF_LATER: asked_ms > 2 * MINUTE_MS,
            IF_EARLIER: asked_ms < 2 * MINUTE_MS,
        }.get(run_at, False)
        wait_ms = asked_ms if is_set else 2 * MINUTE_MS
        for job_id in ("x", "y"):
            record = await record_of(storage, job_id)
            expected = (JobState.SCHEDULED, now + wait_ms) if wait_ms else (JobState.QUEUED, 0)
            assert (record.state, record.due_ms) == expected
        assert sorted(ids(await worker.claim())) == ([] if wait_ms else ["x", "y"])
        await advance(wait_ms)
        assert sorted(ids(await worker.claim())) == (["x", "y"] if wait_ms else [])

    @pytest.mark.parametrize("run_at", list(UpdateRunAt))
    async def test_a_ready_job_may_be_made_to_wait_for_a_time(
        self,
        *,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        run_at: UpdateRunAt,
    ) -> None:
        now = await advance(0)
        await client.enqueue(a_job())
        await client.enqueue(an_update(only_at(run_at), delay_ms=MINUTE_MS))
        is_later = run_at in (ALWAYS, IF_LATER)
        record = await record_of(storage)
        expected = (JobState.SCHEDULED, now + MINUTE_MS) if is_later else (JobState.QUEUED, 0)
        assert (record.state, record.due_ms) == expected
        assert len(await worker.claim()) == (not is_later)
        await advance(MINUTE_MS)
        assert len(await worker.claim()) == is_later

    @pytest.mark.parametrize("run_at", list(UpdateRunAt))
    async def test_a_ready_job_that_still_is_keeps_its_place(
        self, client: ContractClient, worker: ContractIncarnation, run_at: UpdateRunAt
    ) -> None:
        await client.enqueue(a_job("a"), a_job("b"), a_job("c"))
        update = Update(run_at=run_at)
        assert await client.enqueue(an_update(update, "a", run_at_ms=1)) == [UPDATED]
        assert await client.enqueue(an_update(update, "b", payload=b"." * 1000)) == [UPDATED]
        assert ids(await worker.claim()) == ["a", "b", "c"]

    async def test_a_ready_job_of_another_tier_or_lane_goes_to_the_tail_there(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job("a"), a_job("b"), a_job("high", priority=9))
        await client.enqueue(an_update(Update(), "a", priority=9))
        assert ids(await worker.claim()) == ["high", "a", "b"]
        await client.enqueue(a_job("c"), a_job("d"), a_job("cpu", lane="process"))
        await client.enqueue(an_update(Update(), "c", lane="process"))
        assert ids(await worker.claim()) == ["d"]
        assert ids(await worker.claim(slots={"process": 9})) == ["cpu", "c"]

    async def test_a_delayed_job_that_is_due_now_joins_the_tail(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job("x", delay_ms=MINUTE_MS), a_job("a"))
        assert await client.enqueue(an_update()) == [UPDATED]
        assert ids(await worker.claim()) == ["a", "x"]

    @pytest.mark.parametrize("outcome", [retried(), snoozed(), unknown_task(MINUTE_MS)])
    @pytest.mark.parametrize("run_at", [NEVER, ALWAYS])
    async def test_a_job_that_has_run_is_scheduled_once_its_time_is_another(
        self,
        *,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        outcome: Any,
        run_at: UpdateRunAt,
    ) -> None:
        job = await bring(JobState.ACTIVE, client, worker)
        assert job is not None
        await worker.settle(job, outcome)
        before = await record_of(storage)
        await client.enqueue(an_update(only_at(run_at), delay_ms=HOUR_MS))
        record = await record_of(storage)
        if run_at is NEVER:
            assert (record.state, record.due_ms) == (before.state, before.due_ms)
        else:
            assert (record.state, record.due_ms) == (JobState.SCHEDULED, await advance(0) + HOUR_MS)
        assert record.failures == before.failures

    @pytest.mark.parametrize("run_at", list(UpdateRunAt))
    async def test_the_expiry_comes_with_the_time(
        self,
        *,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        run_at: UpdateRunAt,
    ) -> None:
        now = await advance(0)
        await client.enqueue(a_job(delay_ms=MINUTE_MS, expires_in_ms=HOUR_MS))
        await client.enqueue(
            an_update(Update(run_at=run_at), delay_ms=2 * MINUTE_MS, expires_in_ms=2 * HOUR_MS)
        )
        is_set = run_at in (ALWAYS, IF_LATER)
        assert (await record_of(storage)).expires_ms == now + (2 if is_set else 1) * HOUR_MS
        await client.enqueue(an_update(Update(run_at=run_at)))
        is_set_now = run_at in (ALWAYS, IF_EARLIER)
        kept = 2 if is_set else 1
        expected = 0 if is_set_now else now + kept * HOUR_MS
        assert (await record_of(storage)).expires_ms == expected

    @pytest.mark.parametrize("state", WAITING)
    async def test_who_updates_a_waiting_job_hears_of_its_end_and_finds_the_result(
        self,
        *,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        state: JobState,
    ) -> None:
        await bring(state, client, worker, keep_ms=0)
        async with open_channel(storage) as first, open_channel(storage) as second:
            await storage.watch(QUEUE, ["x"], channel=first.name)
            update = Update(data=False)
            assert await client.enqueue(an_update(update, channel=second.name)) == [UPDATED]
            await worker.settle(await worker.claim_one(), completed(keep_ms=0))
            for channel in (first, second):
                assert (await next_end(channel)).state is JobState.COMPLETED
        await advance(MINUTE_MS - 1)
        assert (await record_of(storage)).result == b"1"

    async def test_updates_in_one_call_see_the_jobs_before_them(
        self, storage: Storage, client: ContractClient
    ) -> None:
        outcomes = await client.enqueue(
            a_job("a", **OLD),
            an_update(ONLY_DATA, "a", **NEW),
            a_job("a"),
            an_update(Update(), "b", delay_ms=1),
            an_update(Update(), "b"),
            an_update(only_at(ALWAYS), "a", delay_ms=MINUTE_MS),
        )
        assert outcomes == [QUEUED, UPDATED, DUPLICATE, SCHEDULED, UPDATED, UPDATED]
        record = await record_of(storage, "a")
        assert (record.state, parts_of(record)) == (JobState.SCHEDULED, (NEW_DATA, OLD_RETRY))
        assert await state_of(storage, "b") is JobState.QUEUED
        stats = await storage.stats(QUEUE)
        assert (stats.queued, stats.scheduled, stats.enqueued) == (1, 1, 2)

    async def test_a_repeated_update_answers_the_same_and_changes_nothing(
        self, client: ContractClient, dump: Dump
    ) -> None:
        await client.enqueue(a_job(delay_ms=5), number=1)
        asked = an_update(delay_ms=MINUTE_MS, **NEW)
        assert await client.enqueue(asked, number=2) == [UPDATED]
        before = await dump()
        assert await client.enqueue(asked, number=2) == [UPDATED]
        assert await dump() == before

    async def test_an_update_leaves_one_event_with_the_time_for_which_the_job_waits(
        self, storage: Storage, client: ContractClient, advance: Advance
    ) -> None:
        now = await advance(0)
        await client.enqueue(a_job())
        await client.enqueue(an_update(task="resend"))
        await client.enqueue(an_update(delay_ms=MINUTE_MS))
        await client.enqueue(an_update())
        events = (await storage.events(QUEUE)).events
        assert [(event.kind, event.task, event.due_ms) for event in events] == [
            (JobEventKind.QUEUED, "send", 0),
            (JobEventKind.UPDATED, "resend", 0),
            (JobEventKind.UPDATED, "send", now + MINUTE_MS),
            (JobEventKind.UPDATED, "send", 0),
        ]
        assert {event.job_id for event in events} == {"x"}

    async def test_a_worker_hears_of_a_job_that_is_due_sooner(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job(delay_ms=HOUR_MS))
        assert (await worker.ask()).next_due_ms == HOUR_MS
        await client.enqueue(an_update(delay_ms=MINUTE_MS))
        assert (await worker.ask()).next_due_ms == MINUTE_MS
        await client.enqueue(an_update(delay_ms=2 * HOUR_MS))
        assert (await worker.ask()).next_due_ms == 2 * HOUR_MS

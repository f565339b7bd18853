"""Contract of successors of active jobs that wait again: these become what was asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from headrace.storage import (
    CancelOutcome,
    ClaimedJob,
    EnqueueOutcome,
    JobEventKind,
    JobState,
    Outcome,
    Storage,
    Update,
    UpdateRunAt,
)
from headrace.testing.contract.fixtures import Advance, Contract
from headrace.testing.contract.steps import (
    HOUR_MS,
    MINUTE_MS,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    completed,
    ids,
    record_of,
    retried,
    snoozed,
    stalled,
    started,
    state_of,
    unknown_task,
)
from headrace.testing.contract.updates import (
    ALWAYS,
    BY_PARTS,
    IF_EARLIER,
    IF_LATER,
    NEVER,
    NEW,
    NEW_DATA,
    NOTHING,
    OLD,
    OLD_RETRY,
    ONLY_COUNTS,
    ONLY_DATA,
    an_update,
    only_at,
    parts_of,
)
from headrace.testing.contract.watch import next_end, open_channel

UPDATED, REQUESTED = EnqueueOutcome.UPDATED, CancelOutcome.REQUESTED

WAITING_AGAIN: dict[str, Outcome] = {
    "retried": retried(),
    "retried at once": retried(0),
    "snoozed": snoozed(),
    "put back": unknown_task(MINUTE_MS),
    "stalled": stalled(),
}
"""What lets an active job wait again."""

DELAYED_MS = {"retried": MINUTE_MS, "snoozed": MINUTE_MS, "put back": MINUTE_MS}

Loses = Callable[[Storage, ContractIncarnation, ClaimedJob], Awaitable[object]]


async def _puts_back(storage: Storage, worker: ContractIncarnation, job: ClaimedJob) -> None:
    await storage.put_back(QUEUE, worker.name, [(job.id, job.claim)])


async def _retires(storage: Storage, worker: ContractIncarnation, _job: ClaimedJob) -> None:
    assert await storage.retire(QUEUE, worker.name) == 0


async def _dies(_storage: Storage, worker: ContractIncarnation, _job: ClaimedJob) -> None:
    await worker.die()


LOSING: dict[str, Loses] = {"put back": _puts_back, "retired": _retires, "reaped": _dies}
"""How a worker loses an active job, which waits again at the head."""


class TakenUpContract(Contract):
    """Tests of what an active job is changed to when it waits again."""

    @pytest.mark.parametrize("parts", BY_PARTS)
    @pytest.mark.parametrize("again", WAITING_AGAIN)
    async def test_an_active_job_that_waits_again_takes_what_was_asked(
        self,
        *,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        again: str,
        parts: str,
    ) -> None:
        update, data, retry = BY_PARTS[parts]
        now = await advance(0)
        job = await started(client, worker, **OLD)
        await client.enqueue(an_update(update, delay_ms=HOUR_MS, **NEW))
        assert await worker.settle(job, WAITING_AGAIN[again])
        record = await record_of(storage)
        assert parts_of(record) == (data, retry)
        wait_ms = DELAYED_MS.get(again, 0)
        expected = {
            "retried": JobState.RETRYING, "retried at once": JobState.RETRYING,
            "stalled": JobState.QUEUED,
        }.get(again, JobState.SCHEDULED)  # fmt: skip
        assert record.state is expected
        assert record.due_ms == (0 if again == "stalled" else now + wait_ms)
        assert (record.has_next, record.starts) == (False, 1)
        assert record.failures == ("retried" in again)
        assert record.stalls == (again == "stalled")
        stats = await storage.stats(QUEUE)
        assert (stats.blocked, stats.queued + stats.scheduled + stats.retrying) == (0, 1)
        await advance(wait_ms)
        [second] = await worker.claim()
        assert (second.claim.epoch, second.payload) == (2, data[1])
        await worker.settle(second, completed())
        assert await worker.claim() == []

    @pytest.mark.parametrize(
        ("run_at", "hours", "is_set"),
        [(NEVER, 1, False), (ALWAYS, 1, True), (ALWAYS, 0, True), (ALWAYS, 3, True),
         (IF_LATER, 1, False), (IF_LATER, 3, True), (IF_LATER, 0, False),
         (IF_EARLIER, 1, True), (IF_EARLIER, 3, False), (IF_EARLIER, 0, True)],
    )  # fmt: skip
    async def test_its_time_is_compared_with_the_one_for_which_the_job_would_wait(
        self,
        *,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        run_at: UpdateRunAt,
        hours: int,
        is_set: bool,
    ) -> None:
        now = await advance(0)
        job = await started(client, worker)
        await client.enqueue(an_update(only_at(run_at), delay_ms=hours * HOUR_MS))
        await worker.settle(job, retried(2 * HOUR_MS))
        record = await record_of(storage)
        if not is_set:
            assert (record.state, record.due_ms) == (JobState.RETRYING, now + 2 * HOUR_MS)
        elif hours:
            assert (record.state, record.due_ms) == (JobState.SCHEDULED, now + hours * HOUR_MS)
        else:
            assert (record.state, record.due_ms) == (JobState.QUEUED, 0)

    @pytest.mark.parametrize("how", LOSING)
    async def test_an_active_job_that_its_worker_loses_takes_it_at_the_head(
        self,
        *,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
        how: str,
    ) -> None:
        job = await started(client, worker, **OLD)
        await client.enqueue(an_update(payload=b"new", priority=4), a_job("y", priority=4))
        await LOSING[how](storage, worker, job)
        assert (await storage.stats(QUEUE)).blocked == 0
        assert [(j.id, j.payload) for j in await other.claim()] == [("x", b"new"), ("y", b"[]")]

    @pytest.mark.parametrize("how", LOSING)
    async def test_what_its_worker_loses_waits_for_the_time_that_was_asked(
        self,
        *,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
        advance: Advance,
        how: str,
    ) -> None:
        job = await started(client, worker)
        await client.enqueue(an_update(delay_ms=HOUR_MS))
        await LOSING[how](storage, worker, job)
        assert await other.claim() == []
        assert await state_of(storage) is JobState.SCHEDULED
        await advance(HOUR_MS)
        assert ids(await other.claim()) == ["x"]

    async def test_updates_are_remembered_together_for_a_job_that_waits_again(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker, **OLD)
        await client.enqueue(an_update(ONLY_DATA, **NEW), an_update(ONLY_COUNTS))
        await client.enqueue(an_update(only_at(ALWAYS)), an_update(NOTHING))
        await worker.settle(job, retried())
        record = await record_of(storage)
        assert parts_of(record) == (NEW_DATA, OLD_RETRY)
        assert (record.state, record.failures, record.errors) == (JobState.QUEUED, 0, [])

    async def test_counts_stay_unless_that_is_asked(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        await client.enqueue(an_update())
        await worker.settle(job, retried())
        record = await record_of(storage)
        assert (record.failures, len(record.errors)) == (1, 1)

    async def test_the_last_worker_death_that_a_job_outlives_ends_it(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
    ) -> None:
        await started(client, worker, max_stalls=1)
        await client.enqueue(an_update(payload=b"new", max_stalls=9))
        await worker.die()
        assert (await storage.stats(QUEUE)).failed == 1
        [job] = await other.claim()
        assert (job.payload, job.stalls, job.claim.epoch) == (b"new", 0, 1)

    @pytest.mark.parametrize("again", WAITING_AGAIN)
    async def test_an_active_job_that_was_asked_to_stop_before_makes_room(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        again: str,
    ) -> None:
        job = await started(client, worker)
        assert await storage.cancel(QUEUE, ["x"]) == [REQUESTED]
        assert await client.enqueue(an_update(payload=b"new")) == [UPDATED]
        await worker.settle(job, WAITING_AGAIN[again])
        record = await record_of(storage)
        assert (record.state, record.payload) == (JobState.QUEUED, b"new")
        assert (record.cancel_requested, record.starts) == (False, 0)
        assert (await storage.stats(QUEUE)).cancelled == 1

    async def test_all_who_wait_hear_of_the_end_of_a_job_that_waited_again(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        async with open_channel(storage) as first, open_channel(storage) as second:
            await storage.watch(QUEUE, ["x"], channel=first.name)
            await client.enqueue(an_update(channel=second.name))
            await worker.settle(job, retried())
            await worker.settle(await worker.claim_one(), completed(b"1"))
            for channel in (first, second):
                assert (await next_end(channel)).result == b"1"

    async def test_what_a_job_takes_when_it_waits_again_is_told_behind_its_outcome(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        now = await advance(0)
        job = await started(client, worker)
        await client.enqueue(an_update(Update(run_at=NEVER), task="resend"))
        await worker.settle(job, retried())
        *_, outcome, change = (await storage.events(QUEUE)).events
        assert (outcome.kind, outcome.task, outcome.due_ms) == (
            JobEventKind.RETRYING, "send", now + MINUTE_MS
        )  # fmt: skip
        assert (change.kind, change.task, change.start, change.due_ms) == (
            JobEventKind.UPDATED, "resend", 1, now + MINUTE_MS
        )  # fmt: skip

    async def test_who_only_watched_a_successor_does_not_have_its_record_kept(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        await client.enqueue(an_update())
        async with open_channel(storage) as channel:
            await storage.watch(QUEUE, ["x"], channel=channel.name)
            await storage.put_back(QUEUE, worker.name, [(job.id, job.claim)])
            await worker.settle(await worker.claim_one(), completed(b"1", keep_ms=0))
            assert (await next_end(channel)).result == b"1"
        assert await storage.get(QUEUE, "x") is None

"""Contract of what ``events`` say beside the transition: why and when."""

from __future__ import annotations

import pytest

from headrace.storage import (
    BATCH_LIMIT,
    EventRecord,
    JobEventKind,
    JobState,
    Settlement,
    Storage,
)
from headrace.testing.contract.events import KIND, all_events, row
from headrace.testing.contract.fixtures import Advance, Contract
from headrace.testing.contract.steps import (
    QUEUE,
    STATES,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    completed,
    failed,
    record_of,
    retried,
    snoozed,
    unknown_task,
)


async def last_event(storage: Storage, kind: JobEventKind) -> EventRecord:
    """Return the newest of a kind."""
    return [event for event in await all_events(storage) if event.kind is kind][-1]


class EventWordsContract(Contract):
    """Tests of what ``events`` say."""

    async def test_it_is_told_when_a_job_is_due(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        start = await advance(0)
        await client.enqueue(a_job("later", run_at_ms=start + 70), a_job("past", run_at_ms=start))
        assert (await last_event(storage, KIND.SCHEDULED)).due_ms == start + 70
        assert (await last_event(storage, KIND.QUEUED)).due_ms == 0
        await storage.cancel(QUEUE, ["past"])
        for delay_ms, outcome, kind in [
            (5, retried(5), KIND.RETRYING),
            (6, snoozed(6, "not yet"), KIND.SNOOZED),
            (7, unknown_task(7), KIND.PUT_BACK),
        ]:
            await client.enqueue(a_job(kind.value))
            now = await advance(0)
            await worker.settle(await worker.claim_one(), outcome)
            assert (await last_event(storage, kind)).due_ms == now + delay_ms

    async def test_it_is_told_when_a_job_was_created_that_has_ended(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        created = {}
        for job_id in ("done", "large", "dead", "stopped", "old"):
            created[job_id] = await advance(10)
            expires_in_ms = 25 if job_id == "old" else 0
            await client.enqueue(a_job(job_id, expires_in_ms=expires_in_ms))
        await storage.cancel(QUEUE, ["stopped"])
        await advance(25)
        done, large, dead = await worker.claim()
        await worker.settle(done, completed())
        await worker.settle(large, completed(b"." * 100))
        await worker.settle(dead, failed())
        ended = [event for event in await all_events(storage) if event.created_ms]
        assert {event.job_id: event.created_ms for event in ended} == created
        assert [event.kind for event in ended] == [
            *(KIND.CANCELLED, KIND.FAILED, KIND.COMPLETED, KIND.COMPLETED, KIND.FAILED)
        ]

    async def test_jobs_that_end_together_say_when_each_was_created(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        created = {}
        for job_id in ("a", "b", "c", "d"):
            created[job_id] = await advance(1 if job_id in "ac" else 0)
            await client.enqueue(a_job(job_id))
        jobs = await worker.claim()
        settled = [Settlement(job.id, job.claim, 7, completed()) for job in jobs]
        await worker.settle_all(*settled)
        events = [event for event in await all_events(storage) if event.kind is KIND.COMPLETED]
        assert {event.job_id: event.created_ms for event in events} == created

    @pytest.mark.parametrize("state", [state for state in STATES if state is not JobState.ACTIVE])
    async def test_a_purged_job_leaves_an_event_with_the_state_that_it_was_in(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        state: JobState,
    ) -> None:
        now = await advance(0)
        await bring(state, client, worker)
        record = await record_of(storage)
        await advance(1)
        assert await storage.purge(QUEUE, state, ["x", "unknown"]) == 1
        event = (await all_events(storage))[-1]
        assert row(event) == (KIND.PURGED, "x", record.starts, "", 0, 0, state.value)
        assert (event.task, event.created_ms) == ("send", now)

    async def test_as_many_jobs_as_one_call_takes_are_purged_with_an_event_each(
        self, storage: Storage, client: ContractClient
    ) -> None:
        names = [f"{n}" for n in range(BATCH_LIMIT)]
        await client.enqueue(*(a_job(name) for name in names))
        assert await storage.purge(QUEUE, JobState.QUEUED, names) == BATCH_LIMIT
        events = (await all_events(storage))[BATCH_LIMIT:]
        assert sorted(event.job_id for event in events) == sorted(names)
        assert {event.kind for event in events} == {KIND.PURGED}

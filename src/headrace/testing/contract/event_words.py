"""Contract of what ``events`` say beside the transition: why, when, and which error."""

from __future__ import annotations

import pytest

from headrace.storage import (
    BATCH_LIMIT,
    ErrorInfo,
    EventRecord,
    JobEventKind,
    JobState,
    PutBack,
    Settlement,
    Stalled,
    Storage,
)
from headrace.testing.contract.events import KIND, all_events, row
from headrace.testing.contract.fixtures import Advance, Contract
from headrace.testing.contract.steps import (
    DEATH,
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


def error_of(event: EventRecord) -> tuple[str, str, str]:
    """Return what it says of an error."""
    return event.error, event.message, event.frame


RAISED = ErrorInfo(
    type="shop.Broken",
    message="no\tsuch\naddress",
    traceback="""Traceback (most recent call last):
  File "shop/mail.py", line 7, in send
    check(to)
  File "shop/check.py", line 12, in check
    raise Broken(to)
shop.Broken: no\tsuch\naddress
""",
)
RAISED_WORDS = ("shop.Broken", "no such address", "shop/check.py:12 in check")
NO_WORDS = ("", "", "")
HOSTILE = "\0\t\r\n\x1b[2J\x85" + "½" * 2_000
SHOWN = "     [2J " + "½" * 191


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

    async def test_an_error_is_told_with_its_message_and_where_it_was_raised(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job(max_stalls=2))
        for outcome, kind in [
            (retried(0, RAISED), KIND.RETRYING),
            (Stalled(RAISED), KIND.STALLED),
            (failed(error=RAISED), KIND.FAILED),
        ]:
            await worker.settle(await worker.claim_one(), outcome)
            assert error_of(await last_event(storage, kind)) == RAISED_WORDS
        await storage.redrive(QUEUE, ["x"])
        for _ in range(2):
            await worker.settle(await worker.claim_one(), Stalled(RAISED))
        event = await last_event(storage, KIND.FAILED)
        assert (event.detail, error_of(event)) == ("stalled", RAISED_WORDS)
        [dead] = (await storage.list_jobs(QUEUE, JobState.FAILED)).rows
        assert dead.error == RAISED.type

    async def test_a_dead_worker_and_what_has_no_error_are_told_too(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_job("old", expires_in_ms=1))
        await advance(1)
        await worker.claim()
        event = await last_event(storage, KIND.FAILED)
        assert (event.detail, error_of(event)) == ("expired", NO_WORDS)
        await client.enqueue(a_job(max_stalls=1))
        await worker.claim_one()
        await worker.die()
        words = (DEATH.type, DEATH.message, "")
        for kind in (KIND.STALLED, KIND.FAILED):
            assert error_of(await last_event(storage, kind)) == words
        await client.enqueue(a_job("nowhere"))
        given_up = PutBack(0, RAISED, -1)
        await other.settle(await other.claim_one(), PutBack(0, RAISED))
        await other.settle(await other.claim_one(), given_up)
        event = await last_event(storage, KIND.FAILED)
        assert (event.detail, error_of(event)) == ("unknown_task", RAISED_WORDS)
        record = await record_of(storage, "nowhere")
        assert [error.type for error in record.errors] == [RAISED.type]
        rows = (await storage.list_jobs(QUEUE, JobState.FAILED)).rows
        assert {row.id: row.error for row in rows} == {
            "old": "",
            "x": DEATH.type,
            "nowhere": RAISED.type,
        }

    async def test_no_text_of_an_error_or_a_reason_breaks_the_lines_of_events(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job(max_stalls=5))
        error = ErrorInfo(type="shop.\tE", message=HOSTILE, traceback=f'  File "{HOSTILE}')
        for outcome, kind in [
            (retried(0, error), KIND.RETRYING),
            (Stalled(error), KIND.STALLED),
            (failed(error=error), KIND.FAILED),
        ]:
            await worker.settle(await worker.claim_one(), outcome)
            event = await last_event(storage, kind)
            assert error_of(event) == ("shop. E", SHOWN, "")
            assert bool(event.due_ms) is (kind is KIND.RETRYING)
        await storage.redrive(QUEUE, ["x"])
        await worker.settle(await worker.claim_one(), snoozed(0, "a\tb\nc"))
        event = await last_event(storage, KIND.SNOOZED)
        assert event.detail == "a b c"
        assert event.due_ms > 0

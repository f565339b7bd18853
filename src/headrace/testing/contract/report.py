"""Contract of ``report``: what running attempts say of themselves, and only those (G7)."""

from __future__ import annotations

import pytest

from headrace.storage import Claim, EventRecord, JobEventKind, Outcome, Report, Storage
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    ANY_OUTCOME,
    QUEUE,
    WRONG_CLAIMS,
    ContractClient,
    ContractIncarnation,
    a_job,
    completed,
    failed,
    record_of,
    retried,
    started,
    wrong,
)


async def progress_events(storage: Storage) -> list[EventRecord]:
    """Return the events of reported progress."""
    events = (await storage.events(QUEUE, limit=10_000)).events
    return [event for event in events if event.kind is JobEventKind.PROGRESS]


async def shown(storage: Storage, job_id: str = "x") -> tuple[float | None, str]:
    """Return the progress that a record shows."""
    record = await record_of(storage, job_id)
    return record.progress, record.progress_text


class ReportContract(Contract):
    """Tests of ``report``."""

    async def test_progress_is_shown_by_the_record_and_told_by_an_event(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        assert await shown(storage) == (None, "")
        assert await worker.report(job, 0.25, "page 3 of 12: ½ <b>done</b> 📮")
        assert await shown(storage) == (0.25, "page 3 of 12: ½ <b>done</b> 📮")
        [event] = await progress_events(storage)
        assert (event.job_id, event.task, event.start) == ("x", "send", 1)
        assert event.incarnation == worker.name
        assert event.detail == "0.25 page 3 of 12: ½ <b>done</b> 📮"

    async def test_progress_replaces_what_was_said_before_text_included(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        for fraction, text in [(0.5, "half"), (1.0, ""), (0.0, "from the start")]:
            assert await worker.report(job, fraction, text)
            assert await shown(storage) == (fraction, text)
        assert [event.detail for event in await progress_events(storage)] == [
            "0.5 half",
            "1 ",
            "0 from the start",
        ]

    async def test_six_digits_of_a_fraction_are_kept(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        await worker.report(job, 1 / 3)
        assert await shown(storage) == (0.333333, "")
        assert [event.detail for event in await progress_events(storage)] == ["0.333333 "]

    async def test_a_report_changes_neither_state_nor_claim_nor_times(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        job = await started(client, worker)
        before = await record_of(storage)
        await advance(5)
        await worker.report(job, 0.5, chunks=[b"1"])
        after = await record_of(storage)
        assert (after.state, after.changed_ms) == (before.state, before.changed_ms)
        assert (after.starts, after.failures, after.stalls) == (1, 0, 0)
        assert await worker.settle(job, completed())

    async def test_output_alone_leaves_progress_and_events_as_they_are(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        await worker.report(job, 0.5, "half")
        await worker.report(job, text="not said", chunks=[b"1"])
        assert await shown(storage) == (0.5, "half")
        assert len(await progress_events(storage)) == 1

    async def test_a_repeated_report_answers_the_same_and_changes_nothing(
        self, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        job = await started(client, worker)
        assert await worker.report(job, 0.5, "half", chunks=[b"1", b"2"])
        before = await dump()
        assert await worker.report(job, 0.5, "half", chunks=[b"1", b"2"])
        assert await dump() == before

    async def test_progress_is_of_the_last_attempt_and_outlives_it(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        await worker.report(job, 0.5, "half")
        await worker.settle(job, retried(0))
        assert await shown(storage) == (0.5, "half")
        job = await worker.claim_one()
        assert await shown(storage) == (None, "")
        await worker.report(job, 0.75, "more")
        await worker.settle(job, failed())
        assert await shown(storage) == (0.75, "more")
        await storage.redrive(QUEUE, ["x"])
        assert await shown(storage) == (0.75, "more")
        await worker.claim_one()
        assert await shown(storage) == (None, "")

    async def test_the_next_job_with_an_id_has_said_nothing(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        await worker.report(job, 0.5, "half")
        await worker.settle(job, failed())
        await started(client, worker)
        assert await shown(storage) == (None, "")

    @pytest.mark.parametrize("what", WRONG_CLAIMS)
    async def test_a_report_with_another_claim_is_stale_and_changes_nothing(
        self, client: ContractClient, worker: ContractIncarnation, dump: Dump, what: str
    ) -> None:
        job = await started(client, worker)
        before = await dump()
        claim = wrong(job.claim, what)
        assert not await worker.report(job, 0.5, "half", chunks=[b"1"], claim=claim)
        assert await dump() == before

    @pytest.mark.parametrize("outcome", ANY_OUTCOME, ids=lambda outcome: type(outcome).__name__)
    async def test_after_its_outcome_an_attempt_has_nothing_more_to_say(
        self, client: ContractClient, worker: ContractIncarnation, dump: Dump, outcome: Outcome
    ) -> None:
        job = await started(client, worker)
        await worker.settle(job, outcome)
        before = await dump()
        assert not await worker.report(job, 0.5, "half", chunks=[b"1"])
        assert await dump() == before

    async def test_an_attempt_that_was_put_back_or_died_has_nothing_more_to_say(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        job = await started(client, worker)
        await storage.put_back(QUEUE, worker.name, [(job.id, job.claim)])
        again = await worker.claim_one()
        assert not await worker.report(job, 0.5)
        await worker.reap_once()
        before = await dump()
        assert not await worker.report(again, 0.5, chunks=[b"1"])
        assert await dump() == before

    async def test_a_report_of_an_unknown_job_or_queue_leaves_no_trace(
        self, storage: Storage, worker: ContractIncarnation, dump: Dump
    ) -> None:
        before = await dump()
        unknown = Report("unknown", Claim(1, worker.nonce()), 0.5, "half", [b"1"], 0)
        assert await storage.report(QUEUE, [unknown]) == [False]
        assert await storage.report("no-such-queue", [unknown]) == [False]
        assert await dump() == before

    async def test_each_report_of_a_batch_has_its_own_verdict(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_job(f"{n}") for n in range(500)))
        jobs = await worker.claim()
        reports = [
            Report(job.id, job.claim if n % 2 else wrong(job.claim, "nonce"), n / 500, "", [], 0)
            for n, job in enumerate(jobs)
        ]
        assert await storage.report(QUEUE, reports) == [bool(n % 2) for n in range(500)]
        assert await shown(storage, jobs[1].id) == (0.002, "")
        assert await shown(storage, jobs[2].id) == (None, "")
        assert len(await progress_events(storage)) == 250

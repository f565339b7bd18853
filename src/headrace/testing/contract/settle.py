"""Contract of ``settle``: every outcome, one owner (G7), one outcome (G8), and repetition."""

from __future__ import annotations

import pytest

from headrace import StaleCall
from headrace.storage import Claim, ErrorInfo, FailReason, JobState, Outcome, Settlement, Storage
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    ANY_OUTCOME,
    ENDED,
    ERROR,
    HOUR_MS,
    KILLED,
    MINUTE_MS,
    QUEUE,
    WRONG_CLAIMS,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    cancelled,
    completed,
    failed,
    ids,
    record_of,
    retried,
    snoozed,
    stalled,
    started,
    state_of,
    unknown_task,
    until,
    wrong,
)


class SettleContract(Contract):
    """Tests of ``settle``."""

    async def test_a_completed_job_keeps_its_result_and_how_long_it_ran(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        job = await started(client, worker)
        now = await advance(10)
        assert await worker.settle(job, completed(b'"sent"'), run_ms=10)
        record = await record_of(storage)
        assert (record.state, record.result) == (JobState.COMPLETED, b'"sent"')
        assert (record.run_ms, record.changed_ms) == (10, now)
        assert (record.starts, record.failures, record.stalls) == (1, 0, 0)
        assert record.incarnation == worker.name

    @pytest.mark.parametrize("size", [0, 64, 65, 1024 * 1024])
    async def test_a_result_of_any_size_comes_back_as_it_was(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, size: int
    ) -> None:
        result = bytes(index % 256 for index in range(size))
        await worker.settle(await started(client, worker), completed(result))
        assert (await record_of(storage)).result == result
        [end] = await storage.watch(QUEUE, ["x"], channel="")
        assert (end.state, end.result) == ("completed", None if end.is_cut else result)
        assert end.is_cut == (size > 65536)

    @pytest.mark.parametrize("outcome", [completed(keep_ms=0), cancelled(keep_ms=0)])
    async def test_with_nothing_kept_the_job_is_gone_at_once(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        dump: Dump,
        outcome: Outcome,
    ) -> None:
        await client.enqueue(a_job("warm"))
        await worker.settle(await worker.claim_one(), outcome)
        before = set(await dump(with_calls=False))
        await client.enqueue(a_job(payload=b"." * 100))
        job = await worker.claim_one()
        await worker.settle(job, retried(0))
        job = await worker.claim_one()
        assert await worker.settle(job, outcome)
        assert await storage.get(QUEUE, "x") is None
        assert set(await dump(with_calls=False)) == before
        # A lost reply: the same claim again is no error.
        assert await worker.settle(job, outcome)

    async def test_a_result_that_is_not_kept_leaves_the_completed_record(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await worker.settle(await started(client, worker), completed(b"1", ttl_ms=0))
        record = await record_of(storage)
        assert (record.state, record.result) == (JobState.COMPLETED, None)

    @pytest.mark.parametrize("size", [1, 1000])
    async def test_a_result_may_end_before_its_record(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        size: int,
    ) -> None:
        await worker.settle(await started(client, worker), completed(b"." * size, ttl_ms=500))
        assert (await record_of(storage)).result == b"." * size
        await advance(501)

        async def is_gone() -> bool:
            return (await record_of(storage)).result is None

        await until(is_gone)
        [end] = await storage.watch(QUEUE, ["x"], channel="")
        assert (end.state, end.result, end.is_cut) == ("completed", None, False)

    async def test_a_result_never_outlives_its_record(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        # A later job with the same id would be given it.
        await worker.settle(
            await started(client, worker), completed(b"old", ttl_ms=HOUR_MS, keep_ms=30)
        )
        await advance(31)

        async def is_gone() -> bool:
            return await storage.get(QUEUE, "x") is None

        await until(is_gone)
        job = await started(client, worker)
        assert (await record_of(storage)).result is None
        await worker.settle(job, completed(b"new", ttl_ms=0))
        assert (await record_of(storage)).result is None

    async def test_one_jobs_short_retention_leaves_the_others_alone(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        # BC-53.
        long, short = await started(client, worker, "long"), await started(client, worker, "short")
        await worker.settle(long, completed(b"kept"))
        await worker.settle(short, completed(b"lost", ttl_ms=30, keep_ms=30))
        await advance(31)

        async def is_gone() -> bool:
            return await storage.get(QUEUE, "short") is None

        await until(is_gone)
        assert (await record_of(storage, "long")).result == b"kept"

    async def test_a_retried_job_waits_and_runs_again_with_its_error_noted(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        job = await started(client, worker)
        now = await advance(5)
        assert await worker.settle(job, retried(MINUTE_MS), run_ms=5)
        record = await record_of(storage)
        assert (record.state, record.due_ms) == (JobState.RETRYING, now + MINUTE_MS)
        assert (record.failures, record.stalls, record.starts) == (1, 0, 1)
        [error] = record.errors
        assert (error.type, error.message, error.traceback) == (
            ERROR.type,
            ERROR.message,
            ERROR.traceback,
        )
        assert (error.start, error.at_ms) == (1, now)
        assert await worker.claim() == []
        await advance(MINUTE_MS)
        again = await worker.claim_one()
        assert (again.failures, again.claim.epoch) == (1, 2)

    async def test_a_failed_job_is_a_dead_letter_with_its_reason_and_error(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        assert await worker.settle(job, failed(FailReason.PERMANENT))
        record = await record_of(storage)
        assert (record.state, record.reason) == (JobState.FAILED, FailReason.PERMANENT)
        assert (record.failures, record.starts, len(record.errors)) == (1, 1, 1)
        assert (await storage.stats(QUEUE)).dead == 1
        [end] = await storage.watch(QUEUE, ["x"], channel="")
        assert end.error is not None
        assert (end.state, end.reason, end.error.message) == ("failed", "permanent", ERROR.message)

    async def test_a_failure_that_is_not_the_handlers_counts_no_attempt(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        await worker.settle(job, failed(FailReason.UNDECODABLE, is_attempt=False))
        record = await record_of(storage)
        assert (record.reason, record.failures, len(record.errors)) == ("undecodable", 0, 1)

    async def test_a_stopped_job_ends_cancelled(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        await storage.cancel(QUEUE, ["x"])
        assert await worker.settle(job, cancelled())
        assert (await record_of(storage)).state is JobState.CANCELLED
        assert worker.beat().cancel_ids == []

    async def test_a_job_whose_handler_could_not_be_stopped_says_so(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        assert await worker.settle(job, cancelled(reason="could_not_stop"), run_ms=9)
        record = await record_of(storage)
        assert (record.state, record.reason) == (JobState.CANCELLED, "could_not_stop")
        [row] = (await storage.list_jobs(QUEUE, JobState.CANCELLED)).rows
        assert (row.reason, row.run_ms) == ("could_not_stop", 9)
        event = (await storage.events(QUEUE)).events[-1]
        assert (event.kind, event.detail) == ("cancelled", "could_not_stop")

    async def test_a_stalled_job_goes_to_the_head_of_its_tier_and_lane_with_the_stall_counted(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        # G9: the process that ran it died, the worker lives.
        await client.enqueue(a_job(lane="process"))
        [job] = await worker.claim(slots={"process": 1})
        await client.enqueue(
            a_job("waits", lane="process"), a_job("first", lane="process", priority=9)
        )
        now = await advance(5)
        assert await worker.settle(job, stalled(), run_ms=5)
        record = await record_of(storage)
        assert (record.state, record.changed_ms) == (JobState.QUEUED, now)
        assert (record.failures, record.stalls, record.starts) == (0, 1, 1)
        [error] = record.errors
        assert (error.type, error.message) == (KILLED.type, KILLED.message)
        assert (error.start, error.at_ms) == (1, now)
        assert (await storage.stats(QUEUE)).stalled == 1
        jobs = await worker.claim(slots={"process": 9})
        assert ids(jobs) == ["first", "x", "waits"]
        assert (jobs[1].stalls, jobs[1].claim.epoch) == (1, 2)

    async def test_a_job_that_stalled_as_often_as_it_may_is_a_dead_letter(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job(max_stalls=2))
        for _ in range(2):
            assert await worker.settle(await worker.claim_one(), stalled(), run_ms=5)
        record = await record_of(storage)
        assert (record.state, record.reason) == (JobState.FAILED, FailReason.STALLED)
        assert (record.failures, record.stalls, record.run_ms) == (0, 2, 5)
        assert [error.message for error in record.errors] == [KILLED.message] * 2
        [end] = await storage.watch(QUEUE, ["x"], channel="")
        assert end.error is not None
        assert (end.reason, end.error.type) == ("stalled", KILLED.type)
        events = [(event.kind, event.detail) for event in (await storage.events(QUEUE)).events]
        assert events[-2:] == [("stalled", KILLED.type), ("failed", "stalled")]

    async def test_a_stalled_job_that_was_asked_to_stop_ends_cancelled(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        # G10.
        job = await started(client, worker, keep_ms=MINUTE_MS)
        await storage.cancel(QUEUE, ["x"])
        assert await worker.settle(job, stalled(), run_ms=5)
        record = await record_of(storage)
        assert (record.state, record.stalls, record.run_ms) == (JobState.CANCELLED, 1, 5)
        assert (await storage.stats(QUEUE)).queued == 0

    async def test_the_last_ten_errors_are_kept_newest_first(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job())
        for n in range(1, 13):
            error = ErrorInfo(type="E", message=f"no. {n}", traceback="line 1\nline 2\ttab")
            await worker.settle(await worker.claim_one(), retried(0, error))
        record = await record_of(storage)
        assert [error.message for error in record.errors] == [f"no. {n}" for n in range(12, 2, -1)]
        assert [error.start for error in record.errors] == list(range(12, 2, -1))
        assert {error.traceback for error in record.errors} == {"line 1\nline 2\ttab"}
        assert record.failures == 12

    @pytest.mark.parametrize("outcome", ANY_OUTCOME, ids=lambda outcome: type(outcome).__name__)
    @pytest.mark.parametrize("what", WRONG_CLAIMS)
    async def test_another_claim_is_stale_and_changes_nothing(
        self,
        client: ContractClient,
        worker: ContractIncarnation,
        dump: Dump,
        outcome: Outcome,
        what: str,
    ) -> None:
        job = await started(client, worker)
        before = await dump(with_calls=False)
        assert not await worker.settle(job, outcome, claim=wrong(job.claim, what))
        assert await dump(with_calls=False) == before

    @pytest.mark.parametrize("outcome", ANY_OUTCOME, ids=lambda outcome: type(outcome).__name__)
    async def test_a_claim_is_of_no_use_to_another_incarnation(
        self,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
        dump: Dump,
        outcome: Outcome,
    ) -> None:
        job = await started(client, worker)
        before = await dump(with_calls=False)
        assert not await other.settle(job, outcome)
        assert await dump(with_calls=False) == before

    @pytest.mark.parametrize("outcome", ANY_OUTCOME, ids=lambda outcome: type(outcome).__name__)
    async def test_an_unknown_job_leaves_no_trace(
        self, client: ContractClient, worker: ContractIncarnation, dump: Dump, outcome: Outcome
    ) -> None:
        job = await started(client, worker)
        before = await dump(with_calls=False)
        unknown = Settlement("unknown", job.claim, 1, outcome)
        # Nothing kept looks the same, so it is no error.
        assert await worker.settle_all(unknown) == [True]
        assert await dump(with_calls=False) == before

    @pytest.mark.parametrize("state", ENDED)
    @pytest.mark.parametrize("outcome", ANY_OUTCOME, ids=lambda outcome: type(outcome).__name__)
    async def test_the_first_outcome_stands(
        self,
        client: ContractClient,
        worker: ContractIncarnation,
        dump: Dump,
        state: JobState,
        outcome: Outcome,
    ) -> None:
        job = await bring(state, client, worker)
        assert job is not None
        before = await dump(with_calls=False)
        assert await worker.settle(job, outcome)
        assert await dump(with_calls=False) == before

    async def test_a_claim_ends_with_a_retry_a_release_and_a_put_back(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        for job_id, outcome in [
            ("retried", retried()),
            ("put_back", unknown_task()),
            ("snoozed", snoozed()),
        ]:
            job = await started(client, worker, job_id)
            await worker.settle(job, outcome)
            before = await dump(with_calls=False)
            assert not await worker.settle(job, completed())
            assert await dump(with_calls=False) == before
        job = await started(client, worker)
        await storage.put_back(QUEUE, worker.name, [(job.id, job.claim)])
        before = await dump(with_calls=False)
        assert not await worker.settle(job, completed())
        assert await dump(with_calls=False) == before

    async def test_a_late_finisher_is_refused_and_the_new_owners_outcome_stands(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
    ) -> None:
        # BC-19: w1 was believed dead and w2 has the job.
        job = await started(client, worker)
        await worker.reap_once()
        again = await other.claim_one()
        late = Settlement(job.id, job.claim, 1, completed(b"late"))
        assert await worker.settle_all(late) is None
        assert await other.settle_all(late) == [False]
        assert await other.settle(again, completed(b"right"))
        assert (await record_of(storage)).result == b"right"

    async def test_each_outcome_of_a_batch_has_its_own_verdict(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        first, second, third = [await started(client, worker, name) for name in "abc"]
        reply = await worker.settle_all(
            Settlement("a", first.claim, 1, completed()),
            Settlement("b", Claim(9, second.claim.nonce), 1, completed()),
            Settlement("c", third.claim, 1, failed()),
        )
        assert reply == [True, False, True]
        states = [await state_of(storage, name) for name in "abc"]
        assert states == [JobState.COMPLETED, JobState.ACTIVE, JobState.FAILED]

    async def test_the_same_attempt_twice_in_a_batch_has_one_outcome(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        reply = await worker.settle_all(
            Settlement(job.id, job.claim, 1, completed(b"1")),
            Settlement(job.id, job.claim, 1, failed()),
        )
        assert reply == [True, True]
        assert (await record_of(storage)).result == b"1"
        stats = await storage.stats(QUEUE)
        assert (stats.completed, stats.failed, stats.active) == (1, 0, 0)

    async def test_one_call_settles_500_attempts(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_job(f"{n}") for n in range(500)))
        jobs = await worker.claim()
        done = [Settlement(job.id, job.claim, 1, completed(job.id.encode())) for job in jobs]
        assert await worker.settle_all(*done) == [True] * 500
        assert (await storage.stats(QUEUE)).history == 500

    async def test_a_repeated_settle_answers_the_same_and_changes_nothing(
        self, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        first, second = await started(client, worker, "a"), await started(client, worker, "b")
        batch = [
            Settlement("a", first.claim, 1, retried(0)),
            Settlement("b", Claim(9, second.claim.nonce), 1, completed()),
            Settlement("unknown", first.claim, 1, completed()),
        ]
        assert await worker.settle_all(*batch, number=1) == [True, False, True]
        await worker.claim_one()  # the retried one, by another claim
        before = await dump()
        assert await worker.settle_all(*batch, number=1) == [True, False, True]
        assert await dump() == before

    async def test_an_older_settle_is_stale_and_changes_nothing(
        self, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        first, second = await started(client, worker, "a"), await started(client, worker, "b")
        await worker.settle_all(Settlement("a", first.claim, 1, completed()), number=2)
        before = await dump()
        with pytest.raises(StaleCall):
            await worker.settle_all(Settlement("b", second.claim, 1, completed()), number=1)
        assert await dump() == before

    @pytest.mark.parametrize("is_condemned", [True, False])
    async def test_an_unknown_or_condemned_incarnation_is_gone_and_changes_nothing(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        dump: Dump,
        *,
        is_condemned: bool,
    ) -> None:
        job = await started(client, worker)
        caller = ContractIncarnation(storage, "nobody")
        if is_condemned:
            await worker.reap_once()
            caller = worker
        before = await dump()
        assert await caller.settle_all(Settlement("x", job.claim, 1, completed())) is None
        assert await dump() == before

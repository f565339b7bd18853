"""Contract of ``cancel`` (G10)."""

from __future__ import annotations

import pytest

from headrace.storage import CancelOutcome, End, JobRequest, JobState, Outcome, Storage
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    MINUTE_MS,
    QUEUE,
    WAITING,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    cancelled,
    completed,
    failed,
    retried,
    snoozed,
    stalled,
    started,
    state_of,
    unknown_task,
)
from headrace.testing.contract.watch import next_end, open_channel

CANCELLED, REQUESTED = CancelOutcome.CANCELLED, CancelOutcome.REQUESTED


FINISHED, NOT_FOUND = CancelOutcome.FINISHED, CancelOutcome.NOT_FOUND


class CancelContract(Contract):
    """Tests of ``cancel``."""

    @pytest.mark.parametrize("state", WAITING)
    async def test_a_waiting_job_ends_cancelled_and_never_starts(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        state: JobState,
    ) -> None:
        await bring(state, client, worker)
        assert await storage.cancel(QUEUE, ["x"]) == [CANCELLED]
        record = await storage.get(QUEUE, "x")
        assert record is not None
        assert (record.state, record.changed_ms) == (JobState.CANCELLED, await advance(0))
        await advance(2 * MINUTE_MS)
        assert await worker.claim() == []
        assert (await storage.stats(QUEUE)).history == 1

    async def test_an_active_job_is_asked_to_stop_by_the_next_beats(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
    ) -> None:
        await bring(JobState.ACTIVE, client, worker)
        assert worker.beat().cancel_ids == []
        assert await storage.cancel(QUEUE, ["x"]) == [REQUESTED]
        record = await storage.get(QUEUE, "x")
        assert record is not None
        assert (record.state, record.cancel_requested) == (JobState.ACTIVE, True)
        # Every beat says so until the attempt ends, since a reply can be lost.
        assert [worker.beat().cancel_ids for _ in range(2)] == [["x"]] * 2
        assert other.beat().cancel_ids == []

    @pytest.mark.parametrize(
        ("state", "outcome"),
        [
            (JobState.COMPLETED, FINISHED),
            (JobState.FAILED, FINISHED),
            (JobState.CANCELLED, CANCELLED),
        ],
    )
    async def test_an_ended_job_stays_as_it_is(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        dump: Dump,
        *,
        state: JobState,
        outcome: CancelOutcome,
    ) -> None:
        await bring(state, client, worker)
        before = await dump()
        assert await storage.cancel(QUEUE, ["x"]) == [outcome]
        assert await dump() == before

    async def test_an_unknown_id_leaves_no_trace(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        before = await dump()
        assert await storage.cancel(QUEUE, ["x", "*", ""]) == [NOT_FOUND] * 3
        assert await storage.cancel("no-such-queue", ["x"]) == [NOT_FOUND]
        assert await dump() == before
        # The next job with that id is not harmed.
        await client.enqueue(a_job())
        assert (await worker.claim_one()).id == "x"
        assert worker.beat().cancel_ids == []

    async def test_a_repeated_cancel_answers_the_same_and_changes_nothing(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        await bring(JobState.ACTIVE, client, worker, "active")
        await bring(JobState.QUEUED, client, worker, "queued")
        assert await storage.cancel(QUEUE, ["active", "queued"]) == [REQUESTED, CANCELLED]
        before = await dump()
        assert await storage.cancel(QUEUE, ["active", "queued"]) == [REQUESTED, CANCELLED]
        assert await dump() == before

    async def test_the_same_id_twice_in_a_call_is_cancelled_once(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await bring(JobState.QUEUED, client, worker)
        assert await storage.cancel(QUEUE, ["x", "x"]) == [CANCELLED, CANCELLED]
        assert (await storage.stats(QUEUE)).cancelled == 1

    @pytest.mark.parametrize("outcome", [retried(0), snoozed(0), unknown_task(0), stalled()])
    async def test_what_would_let_a_cancelled_job_wait_again_ends_it(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        outcome: Outcome,
    ) -> None:
        job = await bring(JobState.ACTIVE, client, worker)
        assert job is not None
        await storage.cancel(QUEUE, ["x"])
        assert await worker.settle(job, outcome)
        assert await state_of(storage) is JobState.CANCELLED
        assert worker.beat().cancel_ids == []
        assert await worker.claim() == []

    @pytest.mark.parametrize("how", ["put_back", "retire", "reap"])
    async def test_a_cancelled_job_that_its_worker_loses_ends_cancelled(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
        how: str,
    ) -> None:
        job = await bring(JobState.ACTIVE, client, worker)
        assert job is not None
        await storage.cancel(QUEUE, ["x"])
        if how == "put_back":
            await storage.put_back(QUEUE, worker.name, [(job.id, job.claim)])
        elif how == "retire":
            assert await storage.retire(QUEUE, worker.name) == 0
        else:
            await worker.die()
        assert await state_of(storage) is JobState.CANCELLED
        assert await other.claim() == []

    @pytest.mark.parametrize(
        ("outcome", "state"), [(completed(), JobState.COMPLETED), (failed(), JobState.FAILED)]
    )
    async def test_an_attempt_that_ended_before_it_was_stopped_keeps_its_outcome(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        outcome: Outcome,
        state: JobState,
    ) -> None:
        job = await bring(JobState.ACTIVE, client, worker)
        assert job is not None
        await storage.cancel(QUEUE, ["x"])
        assert await worker.settle(job, outcome)
        assert await state_of(storage) is state
        assert worker.beat().cancel_ids == []

    @pytest.mark.parametrize("state", WAITING)
    async def test_a_cancelled_job_of_which_nothing_is_kept_is_gone_at_once(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, state: JobState
    ) -> None:
        await bring(state, client, worker, keep_ms=0, payload=b"." * 100)
        assert await storage.cancel(QUEUE, ["x"]) == [CANCELLED]
        assert await storage.get(QUEUE, "x") is None
        assert await storage.cancel(QUEUE, ["x"]) == [NOT_FOUND]
        assert (await storage.stats(QUEUE)).history == 0

    async def test_many_jobs_are_cancelled_in_one_call(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        jobs: list[JobRequest] = [a_job(f"{n}", delay_ms=n % 2 * MINUTE_MS) for n in range(500)]
        await client.enqueue(*jobs)
        taken = await worker.claim(100)
        outcomes = await storage.cancel(QUEUE, [job.id for job in jobs])
        assert outcomes.count(REQUESTED) == len(taken) == 100
        assert outcomes.count(CANCELLED) == 400
        assert sorted(worker.beat().cancel_ids) == sorted(job.id for job in taken)

    async def test_a_workers_channel_is_told_which_of_its_jobs_is_to_stop(
        self, storage: Storage, client: ContractClient, other: ContractIncarnation
    ) -> None:
        async with open_channel(storage) as channel:
            worker = await ContractIncarnation(storage, "w3", channel=channel.name).register()
            await bring(JobState.ACTIVE, client, other, "another's")
            await bring(JobState.ACTIVE, client, worker)
            await bring(JobState.QUEUED, client, worker, "waits")
            asked = [CANCELLED, REQUESTED, REQUESTED]
            assert await storage.cancel(QUEUE, ["waits", "another's", "x"]) == asked
            assert await next_end(channel) == End(QUEUE, "x", JobState.ACTIVE)
            # Asked again, it is told again: a message can be lost.
            assert await storage.cancel(QUEUE, ["x"]) == [REQUESTED]
            assert await next_end(channel) == End(QUEUE, "x", JobState.ACTIVE)

    async def test_who_waits_is_told_that_the_handler_could_not_be_stopped(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        async with open_channel(storage) as channel:
            await storage.watch(QUEUE, ["x"], channel=channel.name)
            await worker.settle(job, cancelled(reason="could_not_stop"))
            assert await next_end(channel) == End(
                QUEUE, "x", JobState.CANCELLED, reason="could_not_stop"
            )

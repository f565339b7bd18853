"""Contract of ``outcomes``: how jobs have ended, read by anybody at any time."""

from __future__ import annotations

import pytest

from headrace.storage import BATCH_LIMIT, End, FailReason, JobState, Storage
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    DEATH,
    ERROR,
    QUEUE,
    STATES,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    cancelled,
    completed,
    failed,
    started,
    until,
)

MESSAGE_LIMIT = 64 * 1024


class OutcomesContract(Contract):
    """Tests of ``outcomes``."""

    @pytest.mark.parametrize("state", STATES)
    async def test_outcomes_say_how_a_job_stands_and_change_nothing(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        dump: Dump,
        state: JobState,
    ) -> None:
        await bring(state, client, worker)
        before = await dump()
        ends = await storage.outcomes(QUEUE, ["x"])
        assert await dump() == before
        assert ends == await storage.watch(QUEUE, ["x"], channel="")
        assert ends[0].state is state

    async def test_an_unknown_job_has_no_state_and_leaves_no_trace(
        self, storage: Storage, worker: ContractIncarnation, dump: Dump
    ) -> None:
        before = await dump()
        for queue in (QUEUE, "never-was"):
            ends = await storage.outcomes(queue, ["x", "y"])
            assert ends == [End(queue, "x", None), End(queue, "y", None)]
        assert await dump() == before

    async def test_ends_come_in_the_order_of_the_ids_which_may_repeat(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_job(f"{n}") for n in range(3)))
        for job in await worker.claim():
            await worker.settle(job, completed(job.id.encode()))
        asked = ["2", "0", "none", "2", "1"]
        ends = await storage.outcomes(QUEUE, asked)
        assert [end.id for end in ends] == asked
        assert [end.result for end in ends] == [b"2", b"0", None, b"2", b"1"]
        assert await storage.outcomes(QUEUE, []) == []

    async def test_as_many_as_one_call_may_bring(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        jobs = [a_job(f"{n}") for n in range(BATCH_LIMIT)]
        await client.enqueue(*jobs)
        ends = await storage.outcomes(QUEUE, [job.id for job in jobs])
        assert ends == [End(QUEUE, job.id, JobState.QUEUED) for job in jobs]

    @pytest.mark.parametrize("reason", [FailReason.PERMANENT, FailReason.UNKNOWN_TASK])
    async def test_a_dead_letter_has_its_reason_and_its_last_error(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        reason: FailReason,
    ) -> None:
        job = await started(client, worker)
        await worker.settle(job, failed(reason))
        [end] = await storage.outcomes(QUEUE, ["x"])
        assert (end.state, end.reason, end.result) == (JobState.FAILED, reason, None)
        assert end.error is not None
        assert (end.error.type, end.error.traceback) == (ERROR.type, ERROR.traceback)
        assert (end.error.start, end.error.at_ms) == (1, await advance(0))

    async def test_a_cancelled_job_says_whether_its_handler_goes_on(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        await worker.settle(job, cancelled(reason="could_not_stop"))
        assert await storage.outcomes(QUEUE, ["x"]) == [
            End(QUEUE, "x", JobState.CANCELLED, "could_not_stop")
        ]

    async def test_a_job_of_a_worker_that_died_waits_again_and_at_last_is_a_dead_letter(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await started(client, worker, max_stalls=2)
        await worker.die()
        assert await storage.outcomes(QUEUE, ["x"]) == [End(QUEUE, "x", JobState.QUEUED)]
        other = await ContractIncarnation(storage, "w9").register()
        await other.claim_one()
        await other.die()
        [end] = await storage.outcomes(QUEUE, ["x"])
        assert (end.state, end.reason) == (JobState.FAILED, FailReason.STALLED)
        assert end.error is not None
        assert end.error.type == DEATH.type

    @pytest.mark.parametrize("state", [JobState.SCHEDULED, JobState.QUEUED])
    async def test_a_job_that_is_overdue_to_start_reads_as_it_stands(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        dump: Dump,
        *,
        state: JobState,
    ) -> None:
        await bring(state, client, worker, expires_in_ms=10)
        await advance(10)
        before = await dump()
        assert await storage.outcomes(QUEUE, ["x"]) == [End(QUEUE, "x", state)]
        assert await dump() == before

    @pytest.mark.parametrize("excess", [0, 1])
    async def test_a_result_over_64_kib_is_cut(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, excess: int
    ) -> None:
        result = b"." * (MESSAGE_LIMIT + excess)
        job = await started(client, worker)
        await worker.settle(job, completed(result))
        [end] = await storage.outcomes(QUEUE, ["x"])
        assert (end.is_cut, end.result) == (bool(excess), None if excess else result)

    async def test_results_are_bytes_of_any_kind_and_none_is_no_empty_one(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        results = {"text": b"line 1\nline 2\x00\xff", "empty": b"", "none": b"1"}
        await client.enqueue(*map(a_job, results))
        for job in await worker.claim():
            ttl_ms = 0 if job.id == "none" else 60_000
            await worker.settle(job, completed(results[job.id], ttl_ms=ttl_ms, keep_ms=60_000))
        ends = await storage.outcomes(QUEUE, list(results))
        assert [end.result for end in ends] == [results["text"], b"", None]

    async def test_results_and_records_are_read_as_long_as_they_are_kept(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await worker.settle(await started(client, worker), completed(ttl_ms=50))
        await worker.settle(await started(client, worker, "y"), completed(ttl_ms=50, keep_ms=50))
        await advance(50)

        async def are_over() -> bool:
            ends = await storage.outcomes(QUEUE, ["x", "y"])
            return ends == [End(QUEUE, "x", JobState.COMPLETED), End(QUEUE, "y", None)]

        await until(are_over)

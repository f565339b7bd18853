"""Contract of ``purge``: deletes what is in the state that was looked at, and nothing else."""

from __future__ import annotations

import pytest

from headrace.storage import EnqueueOutcome, JobState, Storage
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    MINUTE_MS,
    QUEUE,
    STATES,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    ids,
    state_of,
)

DELETABLE = [state for state in STATES if state is not JobState.ACTIVE]


class PurgeContract(Contract):
    """Tests of ``purge``."""

    @pytest.mark.parametrize("state", DELETABLE)
    async def test_a_purged_job_is_gone_with_all_that_belonged_to_it(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        state: JobState,
    ) -> None:
        await bring(state, client, worker, payload=b"." * 100)
        assert await storage.purge(QUEUE, state, ["x"]) == 1
        assert await storage.get(QUEUE, "x") is None
        assert (await storage.list_jobs(QUEUE, state)).rows == []
        stats = await storage.stats(QUEUE)
        assert (stats.queued, stats.scheduled, stats.retrying, stats.history, stats.dead) == (
            0,
        ) * 5
        await advance(2 * MINUTE_MS)
        assert await worker.claim() == []
        assert await client.enqueue(a_job(payload=b"[2]")) == [EnqueueOutcome.QUEUED]
        assert [job.payload for job in await worker.claim()] == [b"[2]"]

    @pytest.mark.parametrize("state", STATES)
    async def test_a_job_that_has_moved_on_is_spared(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        dump: Dump,
        state: JobState,
    ) -> None:
        await bring(state, client, worker)
        before = await dump()
        for other in STATES:
            if other is not state:
                assert await storage.purge(QUEUE, other, ["x", "unknown"]) == 0
        assert await dump() == before

    async def test_an_active_job_is_spared(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        await bring(JobState.ACTIVE, client, worker)
        before = await dump()
        assert await storage.purge(QUEUE, JobState.ACTIVE, ["x"]) == 0
        assert await dump() == before

    async def test_a_second_purge_finds_nothing(
        self, storage: Storage, client: ContractClient, dump: Dump
    ) -> None:
        await client.enqueue(a_job("x"), a_job("y"))
        assert await storage.purge(QUEUE, JobState.QUEUED, ["x", "x", "y"]) == 2
        before = await dump()
        assert await storage.purge(QUEUE, JobState.QUEUED, ["x", "y"]) == 0
        assert await dump() == before

    async def test_the_jobs_around_stay_in_order(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_job(f"{n}") for n in range(6)))
        assert await storage.purge(QUEUE, JobState.QUEUED, ["1", "4"]) == 2
        assert ids(await worker.claim()) == ["0", "2", "3", "5"]
        assert await state_of(storage, "1") is None

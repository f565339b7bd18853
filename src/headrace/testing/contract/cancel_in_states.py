"""Contract of ``cancel`` of jobs in all states at once, and of those in some of them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from headrace.storage import CancelOutcome, JobState, Storage, Terms, Update
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    DAY_MS,
    MINUTE_MS,
    QUEUE,
    UNENDED,
    ContractClient,
    ContractIncarnation,
    a_gated_job,
    a_job,
    completed,
    ids,
    record_of,
    retried,
    state_of,
)
from headrace.testing.contract.updates import an_update

CANCELLED, REQUESTED = CancelOutcome.CANCELLED, CancelOutcome.REQUESTED
FINISHED, NOT_FOUND = CancelOutcome.FINISHED, CancelOutcome.NOT_FOUND
ACTIVE, BLOCKED = JobState.ACTIVE, JobState.BLOCKED
ANY = [*UNENDED, BLOCKED]

STANDING = {
    "retrying": JobState.RETRYING,
    "active": ACTIVE,
    "x": ACTIVE,
    "holder": ACTIVE,
    "gated": BLOCKED,
    "scheduled": JobState.SCHEDULED,
    "queued": JobState.QUEUED,
    "done": JobState.COMPLETED,
    "nobody": None,
}
"""What `one_of_each` brings, by its id; another of ``x`` follows it."""


async def one_of_each(client: ContractClient, worker: ContractIncarnation) -> None:
    """Bring a job to each state, and two that are blocked: by a limit, and by the one of its id."""
    for name, outcome in (("done", completed()), ("retrying", retried())):
        await client.enqueue(a_job(name))
        assert await worker.settle(await worker.claim_one(), outcome)
    one = Terms(1)
    await client.enqueue(a_job("active"), a_job("x"), a_gated_job("holder", "k", one))
    assert ids(await worker.claim()) == ["active", "x", "holder"]
    await client.enqueue(an_update(Update()), a_gated_job("gated", "k", one))
    await client.enqueue(a_job("scheduled", delay_ms=MINUTE_MS), a_job("queued"))


async def standing(storage: Storage) -> Mapping[str, JobState | None]:
    """Return how the jobs stand."""
    return {name: await state_of(storage, name) for name in STANDING}


def verdict_on(name: str, state: JobState) -> CancelOutcome:
    """Return what a cancel of the jobs in one state says of one of them."""
    found = STANDING[name]
    if found is JobState.COMPLETED:
        return FINISHED
    if found is state:
        return REQUESTED if state is ACTIVE else CANCELLED
    return CANCELLED if (name, state) == ("x", BLOCKED) else NOT_FOUND


class CancelInStatesContract(Contract):
    """Tests of ``cancel`` by states."""

    async def test_a_job_in_any_state_never_starts_again_once_it_is_cancelled(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await one_of_each(client, worker)
        assert await standing(storage) == STANDING
        verdicts = dict(zip(STANDING, await storage.cancel(QUEUE, list(STANDING)), strict=True))
        assert verdicts == {
            name: next((v for s in ANY if (v := verdict_on(name, s)) is not NOT_FOUND), NOT_FOUND)
            for name in STANDING
        } | {"x": REQUESTED}
        # Nobody ends the active ones as they were asked to, and the places of limits come free.
        await worker.die()
        await advance(DAY_MS // 48)
        assert await other.claim() == []
        stats = await storage.stats(QUEUE)
        left = stats.queued, stats.active, stats.scheduled, stats.retrying, stats.blocked
        assert left == (0, 0, 0, 0, 0)
        for name, state in STANDING.items():
            if state in ANY:
                assert await state_of(storage, name) is JobState.CANCELLED

    @pytest.mark.parametrize("state", ANY)
    async def test_of_jobs_in_one_state_others_are_spared(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, state: JobState
    ) -> None:
        await one_of_each(client, worker)
        verdicts = await storage.cancel(QUEUE, list(STANDING), states=[state])
        assert verdicts == [verdict_on(name, state) for name in STANDING]
        assert await standing(storage) == {
            name: JobState.CANCELLED if there is state is not ACTIVE else there
            for name, there in STANDING.items()
        }
        record = await record_of(storage)
        assert record.has_next is (state not in (ACTIVE, BLOCKED)), "it goes with its active one"
        assert record.cancel_requested is (state is ACTIVE)
        is_asked = [name for name, there in STANDING.items() if there is state is ACTIVE]
        assert sorted(worker.beat().cancel_ids) == sorted(is_asked)

    async def test_several_states_are_those_of_any(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await one_of_each(client, worker)
        names = ["queued", "gated", "x", "active"]
        verdicts = await storage.cancel(QUEUE, names, states=[JobState.QUEUED, BLOCKED])
        assert verdicts == [CANCELLED, CANCELLED, CANCELLED, NOT_FOUND]
        assert await storage.cancel(QUEUE, ["x"], states=[ACTIVE, BLOCKED]) == [REQUESTED]

    async def test_one_that_has_moved_on_is_spared_and_nothing_is_changed(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        await client.enqueue(a_job())
        [job] = await worker.claim()
        before = await dump()
        assert await storage.cancel(QUEUE, ["x"], states=[JobState.QUEUED, BLOCKED]) == [NOT_FOUND]
        assert await dump() == before
        assert await worker.settle(job, completed())
        assert await storage.cancel(QUEUE, ["x"], states=[JobState.QUEUED]) == [FINISHED]

"""Contract of how lines are opened where much has to be: bounded in a call, and to the end."""

from __future__ import annotations

from headrace.storage import (
    BATCH_LIMIT,
    GATES_LOOKS,
    ClaimedJob,
    Gate,
    Settlement,
    Storage,
    Terms,
    gates_text,
)
from headrace.testing.contract.fixtures import Contract
from headrace.testing.contract.steps import (
    ContractClient,
    ContractIncarnation,
    a_gated_job,
    a_job,
    completed,
    gate_counts,
    ids,
)

PLACES = GATES_LOOKS + 50
"""More than come free in a call and are given away in it."""


async def settle_many(worker: ContractIncarnation, jobs: list[ClaimedJob]) -> None:
    """Complete jobs in one call."""
    await worker.settle_all(*(Settlement(job.id, job.claim, 7, completed()) for job in jobs))


class OpeningsContract(Contract):
    """Tests of openings that one call can't finish."""

    async def test_a_call_that_frees_many_places_gives_some_away_and_claims_the_rest(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        terms = Terms(PLACES)
        for first in (0, PLACES):
            await client.enqueue(
                *(a_gated_job(f"{n}", "k", terms) for n in range(first, first + PLACES))
            )
        await settle_many(worker, await worker.claim(BATCH_LIMIT))
        assert await gate_counts(storage, "k") == (GATES_LOOKS, 0, PLACES - GATES_LOOKS)
        started = ids(await worker.claim(BATCH_LIMIT))
        assert started == [f"{n}" for n in range(PLACES, 2 * PLACES)]

    async def test_jobs_that_move_on_to_another_line_are_bounded_as_well(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        both = gates_text([Gate("stripe", "k", Terms(20)), Gate("other", "k", Terms(1))])
        await client.enqueue(a_gated_job("first", "k", Terms(1), name="other"))
        await client.enqueue(*(a_gated_job(f"{n}", "k", Terms(20)) for n in range(20)))
        await client.enqueue(*(a_job(f"later {n}", gates=both) for n in range(150)))
        first, *jobs = await worker.claim(21)
        await settle_many(worker, jobs)
        assert await gate_counts(storage, "k", name="other") == (0, 1, GATES_LOOKS)
        assert await gate_counts(storage, "k") == (0, 0, 150 - GATES_LOOKS)
        assert await worker.claim(BATCH_LIMIT) == []
        assert await gate_counts(storage, "k", name="other") == (0, 1, 150)
        for n in range(150):
            assert await worker.settle(first, completed())
            [first] = await worker.claim(BATCH_LIMIT)
            assert first.id == f"later {n}"

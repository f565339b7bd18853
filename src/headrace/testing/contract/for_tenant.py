"""Contract of ``for_tenant``: one storage's connections for all tenants, and nothing else (G16)."""

from __future__ import annotations

import anyio
import pytest

from headrace import InvalidOption
from headrace.storage import CancelOutcome, JobState, Storage, Verdict
from headrace.testing.contract.fixtures import Contract
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    ids,
    state_of,
)
from headrace.testing.contract.subject import read_all

NEIGHBOUR = "neighbour"


class ForTenantContract(Contract):
    """Tests of ``for_tenant``."""

    async def test_two_tenants_over_one_storage_see_nothing_of_each_other(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job("x"), a_job("ours"))
        neighbour = storage.for_tenant(NEIGHBOUR)
        assert (neighbour.tenant, await neighbour.queues()) == (NEIGHBOUR, [])
        assert await neighbour.get(QUEUE, "x") is None
        assert await neighbour.cancel(QUEUE, ["ours"]) == [CancelOutcome.NOT_FOUND]
        assert await ContractClient(neighbour).enqueue(a_job("x")) == ["queued"]
        theirs = await ContractIncarnation(neighbour, "w1").register()
        assert ids(await theirs.claim(9)) == ["x"]
        assert ids(await worker.claim(9)) == ["x", "ours"]
        assert (await storage.stats(QUEUE)).active == 2
        assert (await neighbour.stats(QUEUE)).active == 1
        await neighbour.aclose()

    async def test_what_one_tenant_does_leaves_the_others_data_alone(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await client.enqueue(a_job("x"))
        neighbour = storage.for_tenant(NEIGHBOUR)
        before = await read_all(storage)
        await ContractClient(neighbour).enqueue(a_job("x"))
        await neighbour.pause(QUEUE)
        assert await neighbour.purge(QUEUE, JobState.QUEUED, ["x"]) == 1
        assert await state_of(storage) is JobState.QUEUED
        assert not (await storage.stats(QUEUE)).is_paused
        assert await read_all(storage) == before
        await neighbour.aclose()

    async def test_a_tenant_that_closes_cuts_no_other_off(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await client.enqueue(a_job("x"))
        neighbour = storage.for_tenant(NEIGHBOUR)
        theirs = ContractClient(neighbour)
        answers: list[Verdict] = []

        async def enqueue(name: str) -> None:
            answers.extend(await theirs.enqueue(a_job(name)))

        await enqueue("first")
        async with anyio.create_task_group() as group:
            for name in ("a", "b", "c"):
                group.start_soon(enqueue, name)
            # Until all of them are on their way.
            await anyio.lowlevel.checkpoint()
            await storage.aclose()
        assert answers == ["queued"] * 4
        await neighbour.aclose()
        # Who has closed may go on.
        assert await state_of(storage) is JobState.QUEUED

    async def test_a_tenants_storage_leads_to_any_other(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await client.enqueue(a_job("x"))
        back = storage.for_tenant(NEIGHBOUR).for_tenant(storage.tenant)
        assert await state_of(back) is JobState.QUEUED
        await back.aclose()

    @pytest.mark.parametrize("name", ["", "a b", "a:b", "a}"])
    async def test_what_is_no_name_of_a_tenant_is_refused(
        self, storage: Storage, name: str
    ) -> None:
        with pytest.raises(InvalidOption, match="tenant"):
            storage.for_tenant(name)

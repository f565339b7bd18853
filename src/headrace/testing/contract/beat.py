"""Contract of ``beat`` and ``beats``: how a worker is known to live."""

from __future__ import annotations

import pytest

from headrace.storage import Storage
from headrace.testing.contract.fixtures import Contract, Dump
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
)


class BeatContract(Contract):
    """Tests of ``beat`` and ``beats``."""

    async def test_every_beat_counts_one_up(
        self, storage: Storage, worker: ContractIncarnation, other: ContractIncarnation
    ) -> None:
        for _ in range(12):
            assert not worker.beat().is_gone
        other.beat()
        counts = {name: beat.count for name, beat in (await storage.beats(QUEUE)).items()}
        assert counts == {"w1": 12, "w2": 1}

    @pytest.mark.parametrize("is_condemned", [True, False])
    async def test_the_beat_of_an_unknown_or_condemned_incarnation_creates_nothing(
        self, storage: Storage, worker: ContractIncarnation, dump: Dump, *, is_condemned: bool
    ) -> None:
        caller = ContractIncarnation(storage, "nobody")
        if is_condemned:
            await worker.reap_once()
            caller = worker
        before = await dump()
        reply = caller.beat()
        assert (reply.is_gone, reply.cancel_ids) == (True, [])
        assert await dump() == before

    async def test_a_beat_names_at_most_500_jobs_that_are_asked_to_stop(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        names = [f"{n}" for n in range(600)]
        for start in (0, 300):
            await client.enqueue(*(a_job(name) for name in names[start : start + 300]))
        await worker.claim(500)
        await worker.claim(500)
        await storage.cancel(QUEUE, names)
        assert len(set(worker.beat().cancel_ids)) == 500

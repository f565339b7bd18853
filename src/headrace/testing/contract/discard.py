"""Contract of ``discard``: stages that nobody has committed go, and no others."""

from __future__ import annotations

import pytest

from headrace import StageLost
from headrace.storage import CommitOutcome, Storage
from headrace.testing.contract.bulk_steps import (
    WRITE,
    ContractWriter,
    commit_stages,
    publish_all,
)
from headrace.testing.contract.fixtures import Contract, Dump
from headrace.testing.contract.steps import QUEUE, a_job, state_of


class DiscardContract(Contract):
    """Tests of ``discard``."""

    async def test_stages_are_dropped_and_counted(self, storage: Storage) -> None:
        writers = [ContractWriter(storage, name=f"t{n}") for n in range(3)]
        for writer in writers:
            await writer.stage(a_job())
        assert await storage.discard(QUEUE, WRITE, ["t0", "t2", "absent"]) == 2
        assert await storage.discard(QUEUE, WRITE, ["t0", "t2", "absent"]) == 0
        with pytest.raises(StageLost):
            await writers[0].commit()
        assert await writers[1].commit() is CommitOutcome.COMMITTED

    @pytest.mark.parametrize("is_published", [False, True])
    async def test_what_is_committed_stays(
        self, storage: Storage, dump: Dump, *, is_published: bool
    ) -> None:
        writer = ContractWriter(storage)
        await writer.stage(a_job("a"))
        await writer.stage(a_job("b"))
        await writer.commit()
        await storage.publish(QUEUE)
        if is_published:
            await publish_all(storage)
        before = await dump()
        assert await writer.discard() == 0
        assert await dump() == before
        await publish_all(storage)
        assert (await storage.stats(QUEUE)).queued == 2

    async def test_a_stage_of_the_same_token_begins_anew(self, storage: Storage) -> None:
        writer = ContractWriter(storage)
        await writer.stage(a_job("dropped"))
        await writer.discard()
        again = ContractWriter(storage)
        await again.stage(a_job("x"))
        await commit_stages(storage, again.stage_info)
        await publish_all(storage)
        assert await state_of(storage, "dropped") is None
        assert await state_of(storage, "x") == "queued"

    async def test_nothing_at_all_is_no_error(self, storage: Storage, dump: Dump) -> None:
        before = await dump()
        assert await storage.discard("never-was", WRITE, ["t1"]) == 0
        assert await storage.discard(QUEUE, WRITE, []) == 0
        assert await dump() == before

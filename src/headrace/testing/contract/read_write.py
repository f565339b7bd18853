"""Contract of ``read_write``: what became of a write, and nothing of one that is not known."""

from __future__ import annotations

from headrace.storage import Storage, WriteInfo
from headrace.testing.contract.bulk_steps import (
    WRITE,
    ContractWriter,
    outlast,
    publish_all,
    report_of,
)
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import QUEUE, a_job


class ReadWriteContract(Contract):
    """Tests of ``read_write``."""

    async def test_a_write_that_never_committed_is_not_known(
        self, storage: Storage, dump: Dump
    ) -> None:
        assert await storage.read_write("never-was", WRITE) is None
        await ContractWriter(storage).stage(a_job())
        before = await dump()
        assert await storage.read_write(QUEUE, WRITE) is None
        assert await dump() == before

    async def test_it_tells_of_all_batches_together(self, storage: Storage) -> None:
        first, second = ContractWriter(storage, name="t1"), ContractWriter(storage, name="t2")
        await first.stage(a_job("a"), a_job("b"))
        await first.commit(batch=2)
        assert await report_of(storage) == WriteInfo(
            id=WRITE, batch=2, stages_left=1, jobs=2, added=0
        )
        await publish_all(storage)
        assert await report_of(storage) == WriteInfo(
            id=WRITE, batch=2, stages_left=0, jobs=2, added=2
        )
        await second.stage(a_job("b"), a_job("c"), a_job("d"))
        await second.commit(batch=7)
        await publish_all(storage)
        info = await report_of(storage)
        assert info == WriteInfo(id=WRITE, batch=7, stages_left=0, jobs=5, added=4)
        assert info.is_published

    async def test_a_batch_that_comes_while_one_is_published_counts_too(
        self, storage: Storage, advance: Advance
    ) -> None:
        first, second = ContractWriter(storage, name="t1"), ContractWriter(storage, name="t2")
        await first.stage(a_job("a"))
        await second.stage(a_job("b"))
        await first.commit(batch=0, keep_ms=40)
        await second.commit(batch=1, keep_ms=40)
        assert (await report_of(storage)).stages_left == 2
        await storage.publish(QUEUE)
        await outlast(storage, advance, 40)
        assert (await report_of(storage)).stages_left == 1
        await publish_all(storage)
        assert (await report_of(storage)).added == 2

"""Contract of ``commit``: all stages of a write become certain in one step, and once."""

from __future__ import annotations

import pytest

from headrace import StageLost
from headrace.storage import CommitOutcome, StageInfo, Storage
from headrace.testing.contract.bulk_steps import (
    WRITE,
    ContractWriter,
    commit_stages,
    outlast,
    publish_all,
    report_of,
)
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import DAY_MS, QUEUE, a_job

COMMITTED, KNOWN = CommitOutcome.COMMITTED, CommitOutcome.KNOWN
LOST = [
    *("absent", "discarded", "published", "committed", "twice", "shorter", "longer"),
    *("of another write", "of another queue"),
]


async def lost_stage(storage: Storage, why: str) -> list[StageInfo]:
    """Return the stages of a commit that can't be, beside those that can."""
    writer = ContractWriter(
        storage,
        "other" if why == "of another write" else WRITE,
        name="lost",
        queue="other" if why == "of another queue" else QUEUE,
    )
    if why != "absent":
        await writer.stage(a_job("x"), a_job("y"))
        await writer.stage(a_job("z"))
    info = writer.stage_info
    match why:
        case "discarded":
            await writer.discard()
        case "published":
            await writer.commit(batch=1)
            await publish_all(storage)
        case "committed":
            await writer.commit(batch=1)
        case "twice":
            return [info, info]
        case "shorter":
            return [StageInfo(info.token, info.length - 1, info.jobs)]
        case "longer":
            return [StageInfo(info.token, info.length + 1, info.jobs)]
    return [info]


class CommitContract(Contract):
    """Tests of ``commit``."""

    async def test_all_stages_are_published_then(self, storage: Storage) -> None:
        writers = [ContractWriter(storage, name=f"t{n}") for n in range(3)]
        for n, writer in enumerate(writers):
            await writer.stage(a_job(f"{n}"))
        assert await storage.publish(QUEUE) == 0
        assert (await storage.stats(QUEUE)).queued == 0
        stages = [writer.stage_info for writer in writers]
        assert await commit_stages(storage, *stages) is COMMITTED
        assert await publish_all(storage) == 3
        assert (await storage.stats(QUEUE)).queued == 3

    @pytest.mark.parametrize("is_published", [False, True])
    async def test_a_second_call_changes_nothing(
        self, storage: Storage, dump: Dump, *, is_published: bool
    ) -> None:
        writer = ContractWriter(storage)
        await writer.stage(a_job())
        assert await writer.commit() is COMMITTED
        if is_published:
            await publish_all(storage)
        before = await dump()
        assert await writer.commit() is KNOWN
        assert await dump() == before

    async def test_a_write_that_is_run_again_is_known_and_its_stages_stay_loose(
        self, storage: Storage, dump: Dump
    ) -> None:
        first, again = ContractWriter(storage), ContractWriter(storage, name="t2")
        await first.stage(a_job("a"))
        await again.stage(a_job("b"))
        assert await first.commit() is COMMITTED
        before = await dump()
        assert await again.commit() is KNOWN
        assert await dump() == before
        assert await again.discard() == 1
        await publish_all(storage)
        assert (await storage.stats(QUEUE)).queued == 1

    async def test_only_a_later_batch_is_new(self, storage: Storage) -> None:
        outcomes = []
        for n, batch in enumerate([3, 3, 2, 0, 4, 9, 5]):
            writer = ContractWriter(storage, name=f"t{n}")
            await writer.stage(a_job(f"{n}"))
            outcomes.append(await writer.commit(batch=batch))
        assert outcomes == [COMMITTED, KNOWN, KNOWN, KNOWN, COMMITTED, COMMITTED, KNOWN]
        assert (await report_of(storage)).batch == 9
        await publish_all(storage)
        assert (await storage.stats(QUEUE)).queued == 3

    @pytest.mark.parametrize("why", LOST)
    async def test_with_a_stage_that_is_not_as_it_was_nothing_is_committed(
        self, storage: Storage, dump: Dump, why: str
    ) -> None:
        sound = ContractWriter(storage, name="sound")
        await sound.stage(a_job("sound"))
        lost = await lost_stage(storage, why)
        before = await dump()
        for stages in ([sound.stage_info, *lost], [*lost, sound.stage_info]):
            with pytest.raises(StageLost):
                await commit_stages(storage, *stages, batch=2)
            assert await dump() == before
        assert await commit_stages(storage, sound.stage_info, batch=2) is COMMITTED

    async def test_a_known_write_needs_no_stages(self, storage: Storage) -> None:
        await commit_stages(storage)
        assert await commit_stages(storage, StageInfo("absent", 1, 1)) is KNOWN

    async def test_an_empty_write_is_known_and_published_at_once(self, storage: Storage) -> None:
        assert await commit_stages(storage) is COMMITTED
        info = await report_of(storage)
        assert (info.is_published, info.jobs, info.added) == (True, 0, 0)
        assert await storage.publish(QUEUE) == 0
        assert await commit_stages(storage) is KNOWN

    async def test_what_is_committed_has_no_end_by_time(
        self, storage: Storage, advance: Advance
    ) -> None:
        writer = ContractWriter(storage, ttl_ms=40)
        await writer.stage(a_job())
        await writer.commit(keep_ms=40)
        await outlast(storage, advance, 40)
        await advance(30 * DAY_MS)
        assert not (await report_of(storage)).is_published
        await publish_all(storage)
        assert (await storage.stats(QUEUE)).queued == 1

    async def test_a_write_is_known_for_so_long_after_it_was_published(
        self, storage: Storage, advance: Advance
    ) -> None:
        writer = ContractWriter(storage)
        await writer.stage(a_job())
        await writer.commit(keep_ms=40)
        await publish_all(storage)
        await outlast(storage, advance, 40)
        assert await storage.read_write(QUEUE, WRITE) is None
        assert await commit_stages(storage) is COMMITTED
        assert (await report_of(storage)).jobs == 0

    async def test_the_last_commit_says_how_long_it_is_known(
        self, storage: Storage, advance: Advance
    ) -> None:
        await commit_stages(storage, keep_ms=40)
        await commit_stages(storage, batch=1, keep_ms=DAY_MS)
        await outlast(storage, advance, 40)
        assert (await report_of(storage)).batch == 1

    async def test_writes_of_another_queue_and_tenant_are_others(self, storage: Storage) -> None:
        neighbour = storage.for_tenant("neighbour")
        assert await commit_stages(storage) is COMMITTED
        assert await commit_stages(neighbour) is COMMITTED
        assert await storage.commit("other", WRITE, [], keep_ms=DAY_MS) is COMMITTED
        await neighbour.aclose()

"""Contract of ``read_schedules``."""

from __future__ import annotations

import pytest

from headrace.storage import BATCH_LIMIT, Storage, StoredSchedule
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.schedule_steps import (
    NEIGHBOUR,
    STRANGE_ID,
    a_schedule,
    names,
    put,
    read,
    write,
)


class ReadSchedulesContract(Contract):
    """Tests of ``read_schedules``."""

    @pytest.mark.parametrize("size", [0, 1, 64, 65, 1024 * 1024])
    async def test_a_schedule_comes_back_as_it_was_written(
        self, storage: Storage, size: int
    ) -> None:
        body = bytes(index % 256 for index in range(size))
        due_ms = 253_402_300_799_999  # the last instant that Python can tell
        await put(storage, STRANGE_ID, app="shop.app", due_ms=due_ms, body=body)
        assert await read(storage, STRANGE_ID) == StoredSchedule(
            id=STRANGE_ID, app="shop.app", version=1, due_ms=due_ms, body=body
        )

    async def test_those_that_are_there_come_in_the_order_in_which_they_are_asked_for(
        self, storage: Storage
    ) -> None:
        await write(storage, *(a_schedule(name) for name in "abc"))
        found = await storage.read_schedules(["c", "gone", "a", "b"])
        assert names(found.schedules) == ["c", "a", "b"]
        assert (await storage.read_schedules([])).schedules == []

    async def test_as_many_are_read_as_one_call_may_ask_for(self, storage: Storage) -> None:
        ids = [f"{n}" for n in range(BATCH_LIMIT)]
        await write(storage, *(a_schedule(name) for name in ids))
        assert names((await storage.read_schedules(ids)).schedules) == ids

    async def test_the_instant_is_told_by_the_storages_clock(
        self, storage: Storage, advance: Advance
    ) -> None:
        now_ms = await advance(7)
        assert (await storage.read_schedules(["gone"])).now_ms == now_ms

    async def test_reading_changes_nothing(self, storage: Storage, dump: Dump) -> None:
        await put(storage)
        before = await dump()
        await storage.read_schedules(["s", "gone"])
        assert await dump() == before

    async def test_another_tenants_are_not_there(self, storage: Storage) -> None:
        await put(storage)
        neighbour = storage.for_tenant(NEIGHBOUR)
        assert await read(neighbour) is None
        await put(neighbour, body=b"theirs")
        ours = await read(storage)
        assert ours is not None
        assert ours.body == b"body"
        await neighbour.aclose()

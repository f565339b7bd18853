"""Contract of ``schedule_history``."""

from __future__ import annotations

import pytest

from headrace.storage import SCHEDULE_HISTORY, Storage
from headrace.testing.contract.fixtures import Contract, Dump
from headrace.testing.contract.schedule_steps import (
    NEIGHBOUR,
    STRANGE_ID,
    a_schedule,
    deletion,
    put,
    write,
)


def entries(first: int, last: int) -> tuple[bytes, ...]:
    """Return numbered entries."""
    return tuple(b"\x00\xff%d" % n for n in range(first, last))


class ScheduleHistoryContract(Contract):
    """Tests of ``schedule_history``."""

    async def test_the_newest_entry_comes_first(self, storage: Storage) -> None:
        await put(storage, STRANGE_ID, history=entries(0, 2))
        await put(storage, STRANGE_ID, history=entries(2, 5), expected=1)
        await put(storage, STRANGE_ID, expected=2)
        assert await storage.schedule_history(STRANGE_ID) == [*reversed(entries(0, 5))]

    @pytest.mark.parametrize("lots", [[60, 60], [99, 1, 1, 1], [0, 130], [30, 300], [100, 100]])
    async def test_the_newest_hundred_are_kept(self, storage: Storage, lots: list[int]) -> None:
        n = 0
        for version, more in enumerate(lots):
            await put(storage, history=entries(n, n + more), expected=version)
            n += more
        kept = [*reversed(entries(n - SCHEDULE_HISTORY, n))]
        assert await storage.schedule_history("s") == kept

    async def test_each_schedule_has_its_own(self, storage: Storage) -> None:
        await write(
            storage, a_schedule("a", history=entries(0, 3)), a_schedule("b", history=entries(3, 4))
        )
        assert await storage.schedule_history("a") == [*reversed(entries(0, 3))]
        assert await storage.schedule_history("b") == [*entries(3, 4)]
        assert await storage.schedule_history("gone") == []

    async def test_a_write_that_is_not_made_adds_nothing(self, storage: Storage) -> None:
        await put(storage, history=entries(0, 1))
        assert await write(storage, a_schedule(history=entries(1, 2))) == [None]
        assert await write(storage, a_schedule("gone", history=entries(1, 2), expected=1)) == [None]
        assert await storage.schedule_history("s") == [*entries(0, 1)]
        assert await storage.schedule_history("gone") == []

    async def test_a_deleted_schedule_takes_it_along(self, storage: Storage) -> None:
        await write(storage, a_schedule("a", history=entries(0, 3)), a_schedule("b"))
        assert await write(storage, deletion("a")) == [0]
        assert await storage.schedule_history("a") == []
        await put(storage, "a", history=entries(3, 4))
        assert await storage.schedule_history("a") == [*entries(3, 4)]
        assert await storage.schedule_history("b") == []

    async def test_reading_it_changes_nothing(self, storage: Storage, dump: Dump) -> None:
        await put(storage, history=entries(0, 3))
        before = await dump()
        await storage.schedule_history("s")
        await storage.schedule_history("gone")
        assert await dump() == before

    async def test_another_tenants_is_not_read(self, storage: Storage) -> None:
        await put(storage, history=entries(0, 3))
        neighbour = storage.for_tenant(NEIGHBOUR)
        assert await neighbour.schedule_history("s") == []
        await put(neighbour, history=entries(3, 4))
        assert await neighbour.schedule_history("s") == [*entries(3, 4)]
        assert await storage.schedule_history("s") == [*reversed(entries(0, 3))]
        await neighbour.aclose()

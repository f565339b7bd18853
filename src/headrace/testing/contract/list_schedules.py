"""Contract of ``list_schedules``."""

from __future__ import annotations

import pytest

from headrace.storage import BATCH_LIMIT_BYTES, SCHEDULES_PAGE_LIMIT, Storage
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.schedule_steps import (
    NEIGHBOUR,
    STRANGE_ID,
    a_schedule,
    deletion,
    flat,
    listed,
    names,
    put,
    read,
    write,
)

MEBIBYTE = 1024 * 1024
ANY_IDS = [
    "z",
    "a",
    "B",
    "10",
    "9",
    "a b",
    "a:b",
    "a/b",
    "é",
    "\uffff",
    "😀",
    STRANGE_ID,
    "x" * 200,
]


class ListSchedulesContract(Contract):
    """Tests of ``list_schedules``."""

    @pytest.mark.parametrize("limit", [1, 3, 500])
    async def test_every_schedule_is_listed_once_in_the_order_of_the_bytes_of_the_ids(
        self, storage: Storage, limit: int
    ) -> None:
        await write(storage, *(a_schedule(name) for name in ANY_IDS))
        pages = await listed(storage, limit=limit)
        assert flat(pages) == sorted(ANY_IDS, key=str.encode)
        assert max(map(len, pages)) <= limit

    async def test_a_page_tells_all_of_a_schedule_and_the_storages_time(
        self, storage: Storage, advance: Advance
    ) -> None:
        await put(storage, app="shop", due_ms=77, body=b"\x00\xff")
        await put(storage, app="shop", due_ms=78, body=b"\xff\x00", expected=1)
        now_ms = await advance(5)
        page = await storage.list_schedules()
        assert (page.now_ms, page.cursor) == (now_ms, "")
        assert page.schedules == [await read(storage)]

    async def test_without_schedules_there_is_one_empty_page(self, storage: Storage) -> None:
        assert await listed(storage) == [[]]
        assert await listed(storage, app="shop") == [[]]

    async def test_those_that_stay_are_listed_once_while_others_come_and_go(
        self, storage: Storage
    ) -> None:
        ids = [f"s{n:02}" for n in range(14)]
        await write(storage, *(a_schedule(name) for name in ids))
        page = await storage.list_schedules(limit=4)
        assert names(page.schedules) == ids[:4]
        # All that was shown is gone, what comes next is too, and there is more on either side.
        await write(storage, *(deletion(name) for name in (*ids[:6], ids[10])))
        await write(storage, *(a_schedule(name) for name in ("a", "s03+", "s08+", "z")))
        await put(storage, ids[12], expected=1, due_ms=5, app="shop")
        rest: list[str] = []
        while page.cursor:
            page = await storage.list_schedules(cursor=page.cursor, limit=3)
            rest += names(page.schedules)
        assert rest == ["s03+", *ids[6:9], "s08+", ids[9], *ids[11:], "z"]

    @pytest.mark.parametrize("limit", [1, 2, 500])
    async def test_an_apps_are_those_that_it_declared(self, storage: Storage, limit: int) -> None:
        await write(
            storage,
            *(a_schedule(f"shop {n}", app="shop") for n in range(3)),
            *(a_schedule(f"shop {n}", app="shop.eu") for n in range(3, 5)),
            a_schedule("stored"),
        )
        assert flat(await listed(storage, app="shop", limit=limit)) == [
            "shop 0",
            "shop 1",
            "shop 2",
        ]
        assert flat(await listed(storage, app="shop.eu", limit=limit)) == ["shop 3", "shop 4"]
        await write(
            storage,
            a_schedule("shop 0", app="shop.eu", expected=1),
            a_schedule("shop 1", expected=1),
            a_schedule("stored", app="shop", expected=1),
            deletion("shop 4"),
        )
        assert flat(await listed(storage, app="shop", limit=limit)) == ["shop 2", "stored"]
        assert flat(await listed(storage, app="shop.eu", limit=limit)) == ["shop 0", "shop 3"]
        assert len(flat(await listed(storage, limit=limit))) == 5

    async def test_a_page_has_as_many_as_there_may_be_at_most(self, storage: Storage) -> None:
        ids = [f"{n:03}" for n in range(SCHEDULES_PAGE_LIMIT + 1)]
        await write(storage, *(a_schedule(name) for name in ids[:-1]))
        await put(storage, ids[-1])
        page = await storage.list_schedules(limit=10 * SCHEDULES_PAGE_LIMIT)
        assert names(page.schedules) == ids[:-1]
        page = await storage.list_schedules(cursor=page.cursor)
        assert names(page.schedules) == ids[-1:]

    @pytest.mark.parametrize("app", [None, "shop"])
    async def test_a_page_of_large_schedules_keeps_to_the_bytes_of_a_call(
        self, storage: Storage, app: str | None
    ) -> None:
        ids = [f"{n}" for n in range(9)]
        for name in ids:
            await put(storage, name, app="shop", body=b"." * MEBIBYTE)
        pages = await listed(storage, app=app)
        assert flat(pages) == ids
        assert max(map(len, pages)) == BATCH_LIMIT_BYTES // MEBIBYTE

    async def test_listing_changes_nothing(self, storage: Storage, dump: Dump) -> None:
        await put(storage, app="shop")
        before = await dump()
        await listed(storage)
        await listed(storage, app="shop")
        assert await dump() == before

    async def test_another_tenants_are_not_listed(self, storage: Storage) -> None:
        await put(storage, "ours", app="shop")
        neighbour = storage.for_tenant(NEIGHBOUR)
        await put(neighbour, "theirs", app="shop")
        for app in (None, "shop"):
            assert await listed(storage, app=app) == [["ours"]]
            assert await listed(neighbour, app=app) == [["theirs"]]
        await neighbour.aclose()

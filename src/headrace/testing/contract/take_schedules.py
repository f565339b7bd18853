"""Contract of ``take_schedules``: what is due is handed out, to one scheduler at a time."""

from __future__ import annotations

import anyio
import pytest

from headrace.storage import BATCH_LIMIT, BATCH_LIMIT_BYTES, Storage
from headrace.testing.contract.fixtures import Advance, Contract
from headrace.testing.contract.schedule_steps import (
    HOLD_MS,
    LATER_MS,
    NEIGHBOUR,
    STRANGE_ID,
    a_schedule,
    deletion,
    names,
    put,
    read,
    take,
    write,
)
from headrace.testing.contract.steps import MINUTE_MS

MEBIBYTE = 1024 * 1024


class TakeSchedulesContract(Contract):
    """Tests of ``take_schedules``."""

    async def test_a_schedule_is_taken_from_the_millisecond_on_at_which_it_is_due(
        self, storage: Storage, advance: Advance
    ) -> None:
        now_ms = await advance(0)
        await put(storage, STRANGE_ID, app="shop", due_ms=now_ms + 10, body=b"\x00\xff")
        now_ms = await advance(9)
        taken = await take(storage)
        assert (taken.now_ms, taken.schedules, taken.next_ms) == (now_ms, [], 1)
        now_ms = await advance(1)
        taken = await take(storage)
        assert (taken.now_ms, taken.schedules) == (now_ms, [await read(storage, STRANGE_ID)])

    async def test_without_schedules_nothing_falls_due(self, storage: Storage) -> None:
        taken = await take(storage)
        assert (taken.schedules, taken.next_ms) == ([], None)

    @pytest.mark.parametrize("limit", [1, 2, 4, 500])
    async def test_those_that_have_been_due_for_longest_come_first(
        self, storage: Storage, advance: Advance, limit: int
    ) -> None:
        now_ms = await advance(0)
        ages_ms = {"c": 40, "a": 10, "later": -50, "d": 86_400_000, "b": 30, "now": 0}
        await write(
            storage,
            *(a_schedule(name, due_ms=now_ms - age_ms) for name, age_ms in ages_ms.items()),
        )
        found: list[str] = []
        while True:
            taken = await take(storage, limit=limit)
            found += names(taken.schedules)
            assert len(taken.schedules) <= limit
            if len(found) == 5:
                break
            assert (len(taken.schedules), taken.next_ms) == (limit, 0)
        assert found == ["d", "c", "b", "a", "now"]
        assert taken.next_ms == 50

    async def test_what_was_taken_is_held_and_nothing_else_of_it_is_changed(
        self, storage: Storage, advance: Advance
    ) -> None:
        await write(storage, a_schedule("a", app="shop", history=(b"1",)), a_schedule("b"))
        before = (await storage.read_schedules("ab")).schedules
        taken = await take(storage, hold_ms=100)
        assert sorted(names(taken.schedules)) == ["a", "b"]
        assert taken.next_ms == 100
        now_ms = await advance(99)
        again = await take(storage)
        assert (again.now_ms, again.schedules, again.next_ms) == (now_ms, [], 1)
        assert (await storage.read_schedules("ab")).schedules == before
        assert await storage.schedule_history("a") == [b"1"]
        await advance(1)
        assert sorted(names((await take(storage)).schedules)) == ["a", "b"]

    async def test_what_was_held_comes_when_its_hold_has_ended(
        self, storage: Storage, advance: Advance
    ) -> None:
        now_ms = await advance(0)
        await put(storage, "held", due_ms=now_ms - MINUTE_MS)
        await take(storage, hold_ms=100)
        await write(
            storage,
            a_schedule("before", due_ms=now_ms + 99),
            a_schedule("after", due_ms=now_ms + 101),
        )
        await advance(101)
        assert names((await take(storage)).schedules) == ["before", "held", "after"]

    async def test_the_next_is_what_falls_due_or_is_held_no_longer(
        self, storage: Storage, advance: Advance
    ) -> None:
        now_ms = await advance(0)
        await write(storage, a_schedule("a"), a_schedule("b", due_ms=now_ms + 300))
        assert (await take(storage, hold_ms=1_000)).next_ms == 300
        assert (await take(storage)).next_ms == 300
        await advance(300)
        assert (await take(storage, hold_ms=1_000)).next_ms == 700

    async def test_a_write_ends_the_hold_of_its_schedule(
        self, storage: Storage, advance: Advance
    ) -> None:
        now_ms = await advance(0)
        await write(storage, *(a_schedule(name) for name in "abcd"))
        assert len((await take(storage)).schedules) == 4
        answers = await write(
            storage,
            a_schedule("a", expected=1),
            a_schedule("b", expected=1, due_ms=now_ms + 10),
            a_schedule("c", expected=7),
            deletion("d"),
        )
        assert answers == [2, 2, None, 0]
        taken = await take(storage)
        assert (names(taken.schedules), taken.next_ms) == (["a"], 10)
        await advance(10)
        assert names((await take(storage)).schedules) == ["b"]
        await advance(HOLD_MS - 10)
        assert sorted(names((await take(storage)).schedules)) == ["a", "c"]

    async def test_a_schedule_that_will_not_be_due_for_long_is_not_taken(
        self, storage: Storage, advance: Advance
    ) -> None:
        now_ms = await advance(0)
        await put(storage, due_ms=LATER_MS)
        taken = await take(storage)
        assert (taken.schedules, taken.next_ms) == ([], LATER_MS - now_ms)
        await put(storage, expected=1, due_ms=now_ms)
        assert names((await take(storage)).schedules) == ["s"]
        assert await write(storage, deletion(expected=2)) == [0]
        assert (await take(storage)).next_ms is None

    async def test_large_schedules_keep_to_the_bytes_of_a_call(self, storage: Storage) -> None:
        ids = [f"{n}" for n in range(9)]
        for n, name in enumerate(ids):
            await put(storage, name, due_ms=n, body=b"." * MEBIBYTE)
        fit = BATCH_LIMIT_BYTES // MEBIBYTE
        first = await take(storage)
        assert (names(first.schedules), first.next_ms) == (ids[:fit], 0)
        assert names((await take(storage)).schedules) == ids[fit : 2 * fit]
        last = await take(storage)
        assert (names(last.schedules), last.next_ms) == (ids[2 * fit :], HOLD_MS)

    async def test_schedulers_that_take_at_the_same_time_share_what_is_due(
        self, storage: Storage
    ) -> None:
        ids = [f"{n:02}" for n in range(40)]
        await write(storage, *(a_schedule(name) for name in ids))
        found: list[str] = []

        async def scheduler(channel: str) -> None:
            while True:
                taken = await take(storage, limit=3, channel=channel)
                if not taken.schedules:
                    break
                found.extend(names(taken.schedules))

        async with anyio.create_task_group() as group:
            for n in range(5):
                group.start_soon(scheduler, f"nobody.{n}")
        assert sorted(found) == ids

    async def test_as_many_are_taken_as_one_call_may_bring(self, storage: Storage) -> None:
        ids = [f"{n:03}" for n in range(BATCH_LIMIT + 1)]
        await write(storage, *(a_schedule(name, due_ms=int(name)) for name in ids[:-1]))
        await put(storage, ids[-1], due_ms=BATCH_LIMIT)
        assert names((await take(storage, limit=BATCH_LIMIT)).schedules) == ids[:-1]
        assert names((await take(storage, limit=BATCH_LIMIT)).schedules) == ids[-1:]

    async def test_another_tenants_are_not_taken(self, storage: Storage) -> None:
        await put(storage, "ours")
        neighbour = storage.for_tenant(NEIGHBOUR)
        taken = await take(neighbour)
        assert (taken.schedules, taken.next_ms) == ([], None)
        await put(neighbour, "theirs")
        assert names((await take(neighbour)).schedules) == ["theirs"]
        assert names((await take(storage)).schedules) == ["ours"]
        await neighbour.aclose()

"""Contract of ``write_schedules``: each change is made only if nobody else made one before."""

from __future__ import annotations

import anyio
import pytest

from headrace import TooManySchedules
from headrace.storage import BATCH_LIMIT, ScheduleWrite, Storage
from headrace.testing.contract.fixtures import Contract, Dump
from headrace.testing.contract.schedule_steps import (
    NEIGHBOUR,
    a_schedule,
    deletion,
    flat,
    listed,
    put,
    read,
    write,
)
from headrace.testing.contract.subject import Subject

THIRD = [a_schedule(), a_schedule(expected=1), a_schedule(expected=2)]
"""Writes that bring a schedule to its third version."""


class WriteSchedulesContract(Contract):
    """Tests of ``write_schedules``."""

    async def test_versions_count_the_writes_of_a_schedule(self, storage: Storage) -> None:
        for version in range(1, 13):
            wanted = a_schedule(expected=version - 1, body=b"%d" % version, due_ms=version, app="a")
            assert await write(storage, wanted) == [version]
            found = await read(storage)
            assert found is not None
            assert (found.version, found.body, found.due_ms) == (version, wanted.body, version)

    @pytest.mark.parametrize(
        "late",
        [a_schedule(expected=expected, body=b"late", app="late") for expected in (0, 1, 2, 4)]
        + [deletion(expected=expected) for expected in (0, 1, 2, 4)],
        ids=lambda late: f"{'write' if late.body else 'deletion'} of version {late.expected}",
    )
    async def test_a_write_that_expects_another_version_changes_nothing(
        self, storage: Storage, dump: Dump, late: ScheduleWrite
    ) -> None:
        for version, each in enumerate(THIRD, 1):
            assert await write(storage, each) == [version]
        before = await dump()
        assert await write(storage, late) == [None]
        assert await dump() == before

    @pytest.mark.parametrize("is_deleted", [False, True])
    async def test_a_write_of_a_schedule_that_is_not_there_leaves_no_trace(
        self, storage: Storage, dump: Dump, *, is_deleted: bool
    ) -> None:
        if is_deleted:
            await put(storage, app="shop", history=(b"1",))
            assert await write(storage, deletion()) == [0]
        before = await dump()
        for late in (a_schedule(expected=1, app="shop", history=(b"2",)), deletion()):
            assert await write(storage, late) == [None]
        assert await dump() == before

    async def test_a_deleted_schedule_is_gone(self, storage: Storage, dump: Dump) -> None:
        before = set(await dump())
        await put(storage, app="shop", history=(b"1",))
        assert await write(storage, deletion()) == [0]
        assert await read(storage) is None
        assert await listed(storage) == await listed(storage, app="shop") == [[]]
        assert set(await dump()) == before

    @pytest.mark.parametrize("first", [1, 7, 10**14])
    async def test_a_schedule_that_is_made_anew_begins_where_it_is_told(
        self, storage: Storage, first: int
    ) -> None:
        for each in THIRD:
            await write(storage, each)
        assert await write(storage, deletion(expected=3)) == [0]
        assert await write(storage, a_schedule(first_version=first)) == [first]
        for version in range(first, first + 3):
            changed = a_schedule(expected=version, first_version=5)
            assert await write(storage, changed) == [version + 1]
        found = await read(storage)
        assert found is not None
        assert found.version == first + 3

    @pytest.mark.parametrize("is_deletion", [False, True])
    async def test_what_was_meant_for_a_deleted_schedule_is_not_made_to_one_of_its_id(
        self, storage: Storage, *, is_deletion: bool
    ) -> None:
        [old] = await write(storage, ScheduleWrite(id="s", expected=0, body=b"old"))
        assert old
        await write(storage, deletion(expected=old))
        [new] = await write(storage, ScheduleWrite(id="s", expected=0, body=b"new"))
        late = ScheduleWrite(id="s", expected=old, body=None if is_deletion else b"late")
        assert await write(storage, late) == [None]
        found = await read(storage)
        assert found is not None
        assert (found.version, found.body) == (new, b"new")

    async def test_a_tenant_is_known_while_it_has_schedules(self, storage: Storage) -> None:
        await put(storage, app="shop", history=(b"1",))
        neighbour = storage.for_tenant("a.neighbour")
        await put(neighbour)
        assert await storage.tenants() == sorted([storage.tenant, "a.neighbour"])
        await write(storage, deletion())
        assert await storage.tenants() == ["a.neighbour"]
        await neighbour.aclose()

    async def test_each_change_of_a_call_is_made_or_not_by_itself(self, storage: Storage) -> None:
        await write(storage, *(a_schedule(name) for name in "abcd"))
        answers = await write(
            storage,
            a_schedule("a", expected=1, body=b"new"),
            a_schedule("b", expected=7, body=b"late"),
            deletion("c"),
            a_schedule("d", body=b"late"),
            deletion("gone"),
            a_schedule("e", body=b"new"),
        )
        assert answers == [2, None, 0, None, None, 1]
        found = (await storage.read_schedules("abcde")).schedules
        assert {each.id: each.body for each in found} == {
            "a": b"new",
            "b": b"body",
            "d": b"body",
            "e": b"new",
        }

    @pytest.mark.parametrize(
        "again",
        [a_schedule(expected=1, history=(b"2",)), deletion()],
        ids=["write", "deletion"],
    )
    async def test_a_call_that_is_repeated_changes_nothing(
        self, storage: Storage, dump: Dump, again: ScheduleWrite
    ) -> None:
        await put(storage, history=(b"1",))
        [answer] = await write(storage, again)
        assert answer is not None
        before = await dump()
        assert await write(storage, again) == [None]
        assert await dump() == before

    async def test_of_writers_at_the_same_time_one_makes_its_change(self, storage: Storage) -> None:
        await put(storage)
        answers: list[int | None] = []

        async def change(body: bytes) -> None:
            answers.extend(await write(storage, a_schedule(expected=1, body=body)))

        async with anyio.create_task_group() as group:
            for n in range(10):
                group.start_soon(change, b"%d" % n)
        assert sorted(answers, key=lambda answer: answer or 0) == [*[None] * 9, 2]

    async def test_as_many_are_written_as_one_call_may_bring(self, storage: Storage) -> None:
        ids = [f"{n:03}" for n in range(BATCH_LIMIT)]
        assert await write(storage, *(a_schedule(name) for name in ids)) == [1] * BATCH_LIMIT
        assert flat(await listed(storage)) == ids
        assert await write(storage, *(deletion(name) for name in ids)) == [0] * BATCH_LIMIT
        assert await listed(storage) == [[]]

    async def test_no_more_schedules_are_taken_than_there_may_be(
        self, storage: Storage, subject: Subject
    ) -> None:
        limit = subject.schedules_limit
        for first in range(0, limit, BATCH_LIMIT):
            numbers = range(first, min(first + BATCH_LIMIT, limit))
            await write(storage, *(a_schedule(f"{n}") for n in numbers))
        first_two = a_schedule("0", expected=1, body=b"new"), deletion("1")
        more = a_schedule("more"), a_schedule("yet more")
        for excess in ([more[0]], [first_two[0], more[0]], [*more, *first_two]):
            with pytest.raises(TooManySchedules, match=f"{limit:,}"):
                await write(storage, *excess)
        found = (await storage.read_schedules(["0", "1", "more", "yet more"])).schedules
        assert [(each.id, each.version, each.body) for each in found] == [
            ("0", 1, b"body"),
            ("1", 1, b"body"),
        ]
        # A neighbour's are not counted, what is there may be changed, and one that goes makes room.
        neighbour = storage.for_tenant(NEIGHBOUR)
        await put(neighbour)
        await neighbour.aclose()
        assert await write(storage, more[0], *first_two) == [1, 2, 0]
        assert await write(storage, deletion("2")) == [0]
        assert await write(storage, more[1]) == [1]

    async def test_another_tenants_schedule_of_the_same_id_is_left_alone(
        self, storage: Storage
    ) -> None:
        await put(storage, body=b"ours")
        neighbour = storage.for_tenant(NEIGHBOUR)
        assert await write(neighbour, a_schedule(expected=1), deletion("gone")) == [None, None]
        await put(neighbour, body=b"theirs")
        assert await write(neighbour, deletion()) == [0]
        ours = await read(storage)
        assert ours is not None
        assert (ours.version, ours.body) == (1, b"ours")
        await neighbour.aclose()

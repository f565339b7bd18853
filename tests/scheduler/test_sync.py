"""The declared schedules of an app are what its newest release declares."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence

import anyio
import pytest

from headrace import App, Every
from headrace.app import declared_of
from headrace.errors import StorageError, StorageFull, TooManySchedules
from headrace.events import ScheduleConflict, ScheduleFailed, SchedulesHeldUp, SchedulesSynced
from headrace.schedule import ScheduleBody
from headrace.scheduler.releases import ALIVE_S, JOIN_S, Membership, Releases
from headrace.storage import RELEASE_LEFT_MS, ScheduleWrite, Storage
from headrace.storage.connect import open_storage
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.testing import EventLog, ManualClock
from tests.support.redis_server import RedisServer
from tests.support.schedules import edit, put, stored

MANY = 1_203
"""More than fit into two calls."""


@pytest.fixture
async def storage(storage_url: str) -> AsyncIterator[Storage]:
    opened = open_storage(storage_url, tenant=f"test-{secrets.token_hex(6)}")
    yield opened
    await opened.aclose()


class Release:
    """A process of a release that declares some schedules."""

    def __init__(
        self,
        storage: Storage,
        schedules: dict[str, float],
        *,
        app: str = "shop",
        clock: ManualClock | None = None,
        interval_s: float = JOIN_S,
    ) -> None:
        self.log = EventLog()
        made: App[None] = App("memory://", name=app)

        @made.task(name="report", queue="reports")
        async def report() -> None: ...

        for schedule_id, seconds in schedules.items():
            made.schedule(schedule_id, report.job(), Every(seconds))
        declared = declared_of(made)
        monotonic = None if clock is None else lambda: clock() / 1000
        self._membership = (
            Membership(storage, declared)
            if monotonic is None
            else Membership(storage, declared, monotonic=monotonic)
        )
        self.digest = declared.release
        self._releases = Releases(
            storage,
            declared,
            emit=self.log,
            membership=self._membership,
            interval_s=interval_s,
        )

    async def turn(self) -> None:
        """Say that it runs, and synchronise if that is due."""
        await self._releases.turn()

    async def leave(self) -> None:
        """End cleanly."""
        await self._membership.leave()

    async def run(self) -> None:
        """Do so again and again, until `stop`."""
        await self._releases.run()

    def stop(self) -> None:
        """End it."""
        self._releases.stop()

    @property
    def done(self) -> list[tuple[int, int, int]]:
        """How many were added, changed and deleted, of each pass."""
        return [(e.added, e.changed, e.deleted) for e in self.log.of(SchedulesSynced)]


async def intervals(storage: Storage, app: str | None = "shop") -> dict[str, float]:
    """Return what is stored: the ids, and the seconds between two occurrences."""
    found: dict[str, float] = {}
    cursor = ""
    while True:
        page = await storage.list_schedules(app=app, cursor=cursor)
        for each in page.schedules:
            body = await read(storage, each.id)
            assert isinstance(body.timing, Every)
            found[each.id] = body.timing.interval_ms / 1000
        cursor = page.cursor
        if not cursor:
            return found


async def read(storage: Storage, schedule_id: str) -> ScheduleBody:
    body = await stored(storage, schedule_id)
    assert body is not None
    return body


async def test_what_an_app_declares_is_stored_once(storage: Storage) -> None:
    first = Release(storage, {"a": 60, "b": 30})
    await first.turn()
    assert await intervals(storage) == {"a": 60, "b": 30}
    assert first.done == [(2, 0, 0)]
    body = await read(storage, "a")
    assert body.next_ms is not None
    assert (body.set_by, body.job.task, body.job.queue) == ("code", "report", "reports")
    before = (await storage.list_schedules()).schedules
    again = Release(storage, {"a": 60, "b": 30})
    await again.turn()
    await first.turn()
    assert (again.done, first.done) == ([(0, 0, 0)], [(2, 0, 0)])
    assert (await storage.list_schedules()).schedules == before


async def test_an_app_that_declares_nothing_says_nothing(storage: Storage) -> None:
    release = Release(storage, {})
    await release.turn()
    assert release.log.events == []


async def test_a_declaration_that_has_changed_takes_the_place_of_the_stored_one(
    storage: Storage,
) -> None:
    await Release(storage, {"a": 60, "b": 30}).turn()
    before = await read(storage, "b")
    newer = Release(storage, {"a": 90, "b": 30})
    await newer.turn()
    assert await intervals(storage) == {"a": 90, "b": 30}
    assert newer.done == [(0, 1, 0)]
    after = await read(storage, "b")
    assert (after.next_ms, after.changed_ms) == (before.next_ms, before.changed_ms)


async def test_many_are_stored_in_several_calls_and_found_in_several_pages(
    storage: Storage,
) -> None:
    declared = {f"s{number:05}": 60.0 for number in range(MANY)}
    first = Release(storage, declared)
    await first.turn()
    assert first.done == [(MANY, 0, 0)]
    second = Release(storage, dict.fromkeys(declared, 30.0))
    await second.turn()
    assert second.done == [(0, MANY, 0)]
    assert set((await intervals(storage)).values()) == {30.0}


async def test_an_older_release_neither_deletes_nor_reverts_what_a_newer_one_declares(
    storage: Storage,
) -> None:
    old = Release(storage, {"a": 60})
    await old.turn()
    new = Release(storage, {"a": 90, "new": 30})
    await new.turn()
    late = Release(storage, {"a": 60})
    for each in (old, late, new, old, late):
        await each.turn()
    assert await intervals(storage) == {"a": 90, "new": 30}
    assert late.log.events == []


async def test_an_operators_edit_and_pause_last_until_the_declaration_changes(
    storage: Storage,
) -> None:
    first = Release(storage, {"a": 60, "b": 30})
    await first.turn()
    await edit(storage, "a", timing=Every(5), set_by="operator")
    await edit(storage, "b", is_paused=True, set_by="operator")
    await Release(storage, {"a": 60, "b": 30}).turn()
    second = Release(storage, {"a": 60, "b": 30, "c": 10})
    await second.turn()
    assert await intervals(storage) == {"a": 5, "b": 30, "c": 10}
    assert (await read(storage, "b")).is_paused
    assert second.done == [(1, 0, 0)]
    third = Release(storage, {"a": 61, "b": 31, "c": 10})
    await third.turn()
    assert await intervals(storage) == {"a": 61, "b": 31, "c": 10}
    assert not (await read(storage, "b")).is_paused
    assert (await read(storage, "a")).set_by == "code"


async def test_what_another_app_or_an_operator_has_is_left_and_told_of(
    storage: Storage,
) -> None:
    await Release(storage, {"a": 60, "theirs": 60}, app="billing").turn()
    await put(storage, "manual", Every(7))
    ours = Release(storage, {"a": 30, "manual": 30, "ours": 30})
    await ours.turn()
    assert await intervals(storage, None) == {"a": 60, "theirs": 60, "manual": 7, "ours": 30}
    conflicts = {(e.schedule, e.app, e.owner) for e in ours.log.of(ScheduleConflict)}
    assert conflicts == {("a", "shop", "billing"), ("manual", "shop", "")}
    assert set(await intervals(storage, "billing")) == {"a", "theirs"}


async def test_what_the_storage_has_lost_is_declared_again(
    redis_url: str, redis_server: RedisServer
) -> None:
    """E3."""
    storage = open_storage(redis_url, tenant=f"test-{secrets.token_hex(6)}")
    release = Release(storage, {"a": 60, "b": 30})
    await release.turn()
    with redis_server.client() as client:
        client.flushall()
    await release.turn()
    assert await intervals(storage) == {"a": 60, "b": 30}
    assert release.done == [(2, 0, 0)] * 2
    # What an operator deletes is not lost.
    [there] = (await storage.read_schedules(["a"])).schedules
    await storage.write_schedules([ScheduleWrite(id="a", expected=there.version)], wakes=False)
    await release.turn()
    assert await intervals(storage) == {"b": 30}
    await storage.aclose()


async def test_several_processes_of_a_release_start_at_once(storage: Storage) -> None:
    declared = {f"s{number}": 60.0 for number in range(200)}
    processes = [Release(storage, declared) for _ in range(5)]
    async with anyio.create_task_group() as group:
        for process in processes:
            group.start_soon(process.turn)
    assert await intervals(storage) == declared
    done = [each for process in processes for each in process.done]
    assert [sum(counts) for counts in zip(*done, strict=True)] == [200, 0, 0]


async def test_what_can_not_be_read_is_left_as_it_is(storage: Storage) -> None:
    await storage.write_schedules(
        [ScheduleWrite(id="newer", expected=0, app="shop", due_ms=0, body=b"\xc1")], wakes=False
    )
    release = Release(storage, {"a": 60})
    await release.turn()
    assert [event.schedule for event in release.log.of(ScheduleFailed)] == ["newer"]
    assert len((await storage.list_schedules(app="shop")).schedules) == 2


def test_the_others_of_a_release_that_a_process_has_left_join_in_time() -> None:
    assert 1000 * JOIN_S < RELEASE_LEFT_MS < 1000 * ALIVE_S


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def timed(clock: ManualClock) -> AsyncIterator[SqliteStorage]:
    opened = SqliteStorage(f"memory://sync-{secrets.token_hex(6)}", clock=clock)
    yield opened
    await opened.aclose()


async def test_a_removed_declaration_goes_once_no_process_declares_it(
    timed: SqliteStorage, clock: ManualClock
) -> None:
    old = Release(timed, {"a": 60, "gone": 30}, clock=clock)
    await old.turn()
    new = Release(timed, {"a": 60}, clock=clock)
    await new.turn()
    await old.turn()
    assert await intervals(timed) == {"a": 60, "gone": 30}
    await old.leave()
    clock.advance_ms(RELEASE_LEFT_MS + 1)
    await new.turn()
    assert await intervals(timed) == {"a": 60}
    assert new.done == [(0, 0, 0), (0, 0, 1)]


async def test_a_roll_back_brings_back_what_the_release_declares(
    timed: SqliteStorage, clock: ManualClock
) -> None:
    old = Release(timed, {"a": 60, "b": 45}, clock=clock)
    await old.turn()
    # It comes and goes between two words of the old one.
    new = Release(timed, {"a": 90, "new": 30}, clock=clock)
    await new.turn()
    await new.leave()
    clock.advance(JOIN_S)
    await old.turn()
    assert await intervals(timed) == {"a": 90, "b": 45, "new": 30}
    clock.advance(JOIN_S)
    await old.turn()
    assert await intervals(timed) == {"a": 60, "b": 45}


async def test_a_process_that_ends_amid_a_deploy_hands_nothing_back_to_the_older_release(
    timed: SqliteStorage, clock: ManualClock
) -> None:
    old = Release(timed, {"a": 60}, clock=clock)
    first, second = (Release(timed, {"a": 90, "new": 30}, clock=clock) for _ in range(2))
    for each in (old, first, second):
        await each.turn()
    clock.advance(JOIN_S - 1)
    await first.turn()
    await first.leave()
    clock.advance(1)
    await old.turn()
    assert await intervals(timed) == {"a": 90, "new": 30}
    await second.turn()
    clock.advance(JOIN_S)
    await old.turn()
    assert await intervals(timed) == {"a": 90, "new": 30}


async def test_a_conflict_is_told_of_once(timed: SqliteStorage, clock: ManualClock) -> None:
    await put(timed, "manual", Every(7))
    old = Release(timed, {}, clock=clock)
    await old.turn()
    new = Release(timed, {"manual": 30}, clock=clock)
    await new.turn()
    await old.leave()
    clock.advance(2 * JOIN_S)
    await new.turn()
    assert len(new.done) == 2
    assert len(new.log.of(ScheduleConflict)) == 1


async def test_after_a_roll_back_by_deaths_the_older_release_takes_over(
    timed: SqliteStorage, clock: ManualClock
) -> None:
    old = Release(timed, {"a": 60}, clock=clock)
    await old.turn()
    new = Release(timed, {"a": 90}, clock=clock)
    await new.turn()
    for _ in range(round(ALIVE_S / JOIN_S)):
        clock.advance(JOIN_S)
        await old.turn()
        assert await intervals(timed) == {"a": 90}
    clock.advance(JOIN_S)
    await old.turn()
    assert await intervals(timed) == {"a": 60}


async def test_the_first_to_come_back_after_an_outage_does_not_take_itself_for_the_newest(
    timed: SqliteStorage, clock: ManualClock
) -> None:
    old = Release(timed, {"a": 60}, clock=clock)
    await old.turn()
    new = Release(timed, {"a": 90, "new": 30}, clock=clock)
    await new.turn()
    clock.advance(3600)
    # In the middle of a deploy, both come back, the older one first.
    for _ in range(6):
        await old.turn()
        assert await intervals(timed) == {"a": 90, "new": 30}
        clock.advance(JOIN_S / 2)
        await new.turn()
        clock.advance(JOIN_S / 2)
    assert await intervals(timed) == {"a": 90, "new": 30}


class Full(SqliteStorage):
    """A storage without room for schedules."""

    error: StorageError | None = None

    async def write_schedules(
        self, writes: Sequence[ScheduleWrite], *, wakes: bool
    ) -> list[int | None]:
        """Refuse it."""
        if self.error is not None:
            raise self.error
        return await super().write_schedules(writes, wakes=wakes)


@pytest.mark.parametrize(
    "error",
    [StorageFull("no room"), TooManySchedules("100,000 are there")],
    ids=["full", "too many"],
)
async def test_a_storage_without_room_is_told_of_once_and_tried_again(
    error: StorageError,
) -> None:
    storage = Full(f"memory://full-{secrets.token_hex(6)}")
    storage.error = error
    process = Release(storage, {"a": 60}, interval_s=0.02)
    async with anyio.create_task_group() as group:
        group.start_soon(process.run)
        await process.log.wait(SchedulesHeldUp)
        storage.error = None
        await process.log.wait(SchedulesSynced, within=20)
        process.stop()
    assert len(process.log.of(SchedulesHeldUp)) == 1
    assert await intervals(storage) == {"a": 60}
    await storage.aclose()

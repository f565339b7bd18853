"""Which keys there are of schedules, and that each ends (DESIGN §5.1)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import redis

from headrace.errors import InvalidOption
from headrace.storage.base import Storage
from headrace.storage.limits import FIRED_TTL_MS, RELEASES_TTL_MS, SCHEDULES_HEARD_MS
from headrace.testing.contract.fixtures import Advance, Dump
from headrace.testing.contract.schedule_steps import (
    a_schedule,
    an_occurrence,
    deletion,
    fire,
    put,
    take,
    write,
)
from tests.storage.redis.conftest import ROOT
from tests.support.leaks import problems

TENANT_ROOT = "hr:{acme}"
CHANNEL = f"{TENANT_ROOT}:channel:0"


async def fill(storage: Storage) -> None:
    """Leave a key of every kind."""
    await put(storage, app="shop", history=(b"1",))
    await take(storage, channel=CHANNEL)
    await storage.join_release("shop", "v1", alive_ms=1)
    await fire(storage, an_occurrence(5))


async def test_all_but_the_marks_of_what_was_fired_is_in_the_tenants_slot(
    storage: Storage, dump: Dump, advance: Advance
) -> None:
    await fill(storage)
    period = await advance(0) // FIRED_TTL_MS
    of_the_job = {
        f"{ROOT}:{name}"
        for name in ("counts", "events", "job:s:5", "ready:default:5", "wake:default")
    }
    kinds = (
        *("schedule:s", "schedule-history:s", "schedules", "schedules-of:shop", "schedules-due"),
        *("schedules-heard", "schedule-releases:shop", "queues"),
    )
    found = {key for key in await dump() if ":stats:" not in key} - of_the_job
    assert found == {f"{ROOT}:fired:{period}", *(f"{TENANT_ROOT}:{kind}" for kind in kinds)}


async def test_what_nobody_deletes_ends_by_itself(
    storage: Storage, server: redis.Redis, advance: Advance
) -> None:
    await fill(storage)
    period = await advance(0) // FIRED_TTL_MS
    for key, expected in [
        (f"{ROOT}:fired:{period}", 2 * FIRED_TTL_MS),
        (f"{TENANT_ROOT}:schedules-heard", 60 * SCHEDULES_HEARD_MS),
        (f"{TENANT_ROOT}:schedule-releases:shop", RELEASES_TTL_MS),
    ]:
        assert expected - 60_000 < server.pttl(key) <= expected, key


async def test_a_deleted_schedule_leaves_nothing_but_its_mark(storage: Storage, dump: Dump) -> None:
    await fill(storage)
    assert await write(storage, deletion()) == [0]
    kinds = ("schedules-heard", "schedule-releases:shop", "queues")
    assert {key for key in await dump() if key.startswith(TENANT_ROOT)} == {
        f"{TENANT_ROOT}:{kind}" for kind in kinds
    }


async def test_numbers_and_instants_come_back_exactly(
    storage: Storage, server: redis.Redis
) -> None:
    year_9999 = 253_402_300_799_999
    await put(storage, due_ms=year_9999)
    server.hset(f"{TENANT_ROOT}:schedule:s", "version", "99999999999998")
    assert await write(storage, a_schedule(expected=99_999_999_999_998, due_ms=year_9999)) == [
        99_999_999_999_999
    ]
    [found] = (await storage.read_schedules(["s"])).schedules
    assert (found.version, found.due_ms) == (99_999_999_999_999, year_9999)
    taken = await take(storage)
    assert taken.next_ms == year_9999 - taken.now_ms
    assert await fire(storage, an_occurrence(year_9999)) == ["queued"]
    assert await fire(storage, an_occurrence(year_9999)) == ["duplicate"]


async def test_channels_that_were_not_named_for_long_are_forgotten(
    storage: Storage, server: redis.Redis, advance: Advance
) -> None:
    async def named(*later: tuple[int, str]) -> list[object]:
        for ms, name in later:
            await advance(ms)
            await take(storage, channel=name)
        return list(server.zrange(f"{TENANT_ROOT}:schedules-heard", 0, -1))

    assert await named((0, "a"), (SCHEDULES_HEARD_MS, "b")) == [b"a", b"b"]
    assert await named((1, "b")) == [b"b"]
    # Those that live are still told when the clock is set back.
    assert await named((-3_600_000, "c")) == [b"c", b"b"]


@pytest.mark.parametrize("cursor", ["\ud800", "%", "%f", "%FF", "%zz"], ids=ascii)
async def test_a_cursor_that_is_none_is_refused_before_any_io(
    storage: Storage, cursor: str
) -> None:
    with pytest.raises(InvalidOption, match="cursor"):
        await storage.list_schedules(cursor=cursor)


Damage = Callable[[redis.Redis], object]
DAMAGES: dict[str, tuple[Damage, str]] = {
    "a history that is nobody's": (
        lambda r: r.lpush(f"{TENANT_ROOT}:schedule-history:x", "1"),
        "history of 'x'",
    ),
    "a lost place": (lambda r: r.delete(f"{TENANT_ROOT}:schedules"), "schedules {}"),
    "a lost due one": (lambda r: r.delete(f"{TENANT_ROOT}:schedules-due"), "schedules-due {}"),
    "another app's": (
        lambda r: r.zadd(f"{TENANT_ROOT}:schedules-of:bank", {"s": 0}),
        "schedules-of",
    ),
    "a record that ends": (
        lambda r: r.expire(f"{TENANT_ROOT}:schedule:s", 99),
        "schedule:s has a TTL",
    ),
    "releases that last": (
        lambda r: r.persist(f"{TENANT_ROOT}:schedule-releases:shop"),
        "schedule-releases:shop lacks a TTL",
    ),
    "a field too many": (
        lambda r: r.hset(f"{TENANT_ROOT}:schedule:s", "x", "1"),
        "schedule 's' has the fields",
    ),
    "an unknown key": (lambda r: r.set(f"{TENANT_ROOT}:new", "1"), "new is not a key of ours"),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_the_check_finds(storage: Storage, server: redis.Redis, damage: str) -> None:
    await fill(storage)
    assert problems(server) == []
    harm, expected = DAMAGES[damage]
    harm(server)
    assert any(expected in problem for problem in problems(server)), problems(server)
    server.flushall()

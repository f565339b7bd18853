"""F6: strange keys and fields where schedules belong are set aside, and lost places are found."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest
import redis

from headrace.storage.base import Storage
from headrace.testing.contract.schedule_steps import (
    a_schedule,
    an_occurrence,
    deletion,
    fire,
    flat,
    listed,
    names,
    put,
    read,
    take,
    write,
)
from headrace.testing.contract.steps import QUEUE
from tests.storage.conftest import RedisSubject
from tests.support import leaks
from tests.support.redis_server import RedisServer

ROOT = "hr:{acme}"
NOW_MS = 10**12
CHANNEL = "hr:{acme}:channel:0"
KEYS = {
    "schedule:s": f"{ROOT}:schedule:s",
    "history": f"{ROOT}:schedule-history:s",
    "schedules": f"{ROOT}:schedules",
    "due": f"{ROOT}:schedules-due",
    "of an app": f"{ROOT}:schedules-of:shop",
    "heard": f"{ROOT}:schedules-heard",
    "releases": f"{ROOT}:schedule-releases:shop",
    "damaged": f"{ROOT}:damaged",
    "fired": f"hr:{{acme:{QUEUE}}}:fired:{NOW_MS // (7 * 24 * 3_600_000)}",
}


@pytest.fixture
def server(redis_server: RedisServer) -> Iterator[redis.Redis]:
    with redis_server.client() as client:
        client.flushall()
        yield client


@pytest.fixture
async def storage(redis_server: RedisServer, server: redis.Redis) -> AsyncIterator[Storage]:
    subject = RedisSubject(redis_server.url)
    server.set("headrace-test:now-ms", NOW_MS)
    yield subject.storage
    await subject.aclose()


def plant(server: redis.Redis, key: str) -> None:
    """Put a key of the wrong type in a key's place."""
    server.delete(key)
    server.set(key, "a stranger's")


@pytest.mark.parametrize("kind", KEYS)
async def test_schedules_live_on_as_if_a_strange_key_were_not_there(
    storage: Storage, server: redis.Redis, kind: str
) -> None:
    plant(server, KEYS[kind])
    assert await write(storage, a_schedule(app="shop", history=(b"1",)), wakes=True) == [1]
    assert await write(storage, a_schedule(expected=1, app="shop", history=(b"2",))) == [2]
    assert names((await take(storage, channel=CHANNEL)).schedules) == ["s"]
    assert await storage.schedule_history("s") == [b"2", b"1"]
    assert await listed(storage) == await listed(storage, app="shop") == [["s"]]
    assert await fire(storage, an_occurrence(5)) == ["queued"]
    assert await fire(storage, an_occurrence(5)) == ["duplicate"]
    assert (await storage.join_release("shop", "v1", alive_ms=9)).is_newest
    await storage.leave_release("shop", "v1")
    # What nobody needed to write to is still there.
    if server.type(KEYS["damaged"]) == b"string":
        server.delete(KEYS["damaged"])
    assert leaks.problems(server) == []
    assert await write(storage, deletion(expected=2)) == [0]
    assert set(server.scan_iter(f"{ROOT}:schedule:*")) == set()


Step = Callable[[Storage], Awaitable[object]]
VERBS: dict[str, Step] = {
    "read": lambda s: s.read_schedules(["s"]),
    "list": lambda s: s.list_schedules(),
    "list of an app": lambda s: s.list_schedules(app="shop"),
    "history": lambda s: s.schedule_history("s"),
    "make": lambda s: write(s, a_schedule("new", app="shop", history=(b"1",)), wakes=True),
    "make again": lambda s: write(s, a_schedule(app="shop", history=(b"1",)), wakes=True),
    "change": lambda s: write(s, a_schedule(expected=1, history=(b"1",)), wakes=True),
    "delete": lambda s: write(s, deletion()),
    "take": lambda s: take(s, channel=CHANNEL),
    "fire": lambda s: fire(s, an_occurrence(6)),
    "join": lambda s: s.join_release("shop", "v1", alive_ms=9),
    "leave": lambda s: s.leave_release("shop", "v1"),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_no_verb_fails_when_a_key_turns_strange(
    storage: Storage, server: redis.Redis, verb: str
) -> None:
    for key in KEYS.values():
        server.flushall()
        server.set("headrace-test:now-ms", NOW_MS)
        await put(storage, app="shop", history=(b"0",))
        await take(storage, channel=CHANNEL)
        await fire(storage, an_occurrence(5))
        await storage.join_release("shop", "v1", alive_ms=9)
        plant(server, key)
        await VERBS[verb](storage)


@pytest.mark.parametrize("field", ["app", "version", "due_ms", "body"])
async def test_a_record_without_a_field_is_no_schedule_and_makes_room_for_one(
    storage: Storage, server: redis.Redis, field: str
) -> None:
    await put(storage, app="shop", history=(b"1",))
    server.hdel(f"{ROOT}:schedule:s", field)
    assert await read(storage) is None
    assert await listed(storage) == [[]]
    assert await write(storage, a_schedule(expected=1), deletion()) == [None, None]
    assert await write(storage, a_schedule(app="shop", history=(b"2",))) == [1]
    assert await storage.schedule_history("s") == [b"2"]
    assert leaks.problems(server) == []


@pytest.mark.parametrize("field", ["version", "due_ms"])
@pytest.mark.parametrize("rubbish", [b"x", b"-1", b"1e3", b"9" * 16, b"\xff", b""])
async def test_a_record_with_rubbish_is_no_schedule(
    storage: Storage, server: redis.Redis, field: str, rubbish: bytes
) -> None:
    await put(storage)
    server.hset(f"{ROOT}:schedule:s", field, rubbish)
    assert await read(storage) is None
    assert (await take(storage)).schedules == []


async def test_what_is_left_of_a_lost_record_is_erased_when_it_is_due(
    storage: Storage, server: redis.Redis
) -> None:
    await put(storage, history=(b"1",))
    await put(storage, "other")
    server.delete(f"{ROOT}:schedule:s")
    assert await listed(storage) == [["other"]]
    assert names((await take(storage)).schedules) == ["other"]
    assert server.zrange(f"{ROOT}:schedules", 0, -1) == [b"other"]
    assert await storage.schedule_history("s") == []


async def test_an_app_is_not_shown_a_schedule_that_another_made_of_a_lost_one(
    storage: Storage, server: redis.Redis
) -> None:
    await put(storage, app="shop")
    server.delete(f"{ROOT}:schedule:s")
    await put(storage, app="bank")
    assert await listed(storage, app="shop") == [[]]
    assert await listed(storage, app="bank") == [["s"]]


async def test_schedules_whose_place_was_lost_are_due_again(
    storage: Storage, server: redis.Redis
) -> None:
    ids = [f"{n:03}" for n in range(200)]
    await write(
        storage, *(a_schedule(name) for name in ids), a_schedule("later", due_ms=2 * NOW_MS)
    )
    server.delete(f"{ROOT}:schedules-due")
    taken = await take(storage, hold_ms=7)
    assert (names(taken.schedules), taken.next_ms) == (ids, 7)
    server.zrem(f"{ROOT}:schedules-due", "000", "later")
    assert names((await take(storage)).schedules) == ["000"]
    assert leaks.problems(server) == []


async def test_a_listing_comes_to_its_end_behind_ids_that_are_no_text(
    storage: Storage, server: redis.Redis
) -> None:
    ids = ["%", "%ff", "%zz", "a\x0bb", "ü"]
    await write(storage, *(a_schedule(name) for name in ids))
    server.zadd(f"{ROOT}:schedules", {b"\xfd": 0, b"\xfe": 0, b"\xff": 0})
    assert flat(await listed(storage, limit=1)) == ids


async def test_rubbish_among_the_due_ones_holds_nobody_up(
    storage: Storage, server: redis.Redis
) -> None:
    await put(storage)
    rubbish = {b"nobody": 5.0, b"\xff": 1.0, b"": float("-inf")}
    server.zadd(f"{ROOT}:schedules-due", rubbish)
    server.zadd(f"{ROOT}:schedules", {b"\xff": 0, b"": 0})
    assert flat(await listed(storage, limit=1)) == ["s"]
    assert names((await take(storage)).schedules) == ["s"]
    assert leaks.problems(server) == []


async def test_the_doctor_tells_what_was_set_aside(storage: Storage, server: redis.Redis) -> None:
    plant(server, KEYS["due"])
    plant(server, KEYS["history"])
    await put(storage, history=(b"1",))
    [detail] = [found.detail for found in await storage.diagnose() if found.topic == "data"]
    assert "schedules: strange data" in detail
    assert "schedules-due 1" in detail
    # A new schedule erases what is left of an earlier one.
    assert "history" not in detail

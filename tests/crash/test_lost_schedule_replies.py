"""Replies about schedules get lost on the way: repeating the call harms nothing (G13)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from headrace.errors import ReplyLost
from headrace.storage.base import Storage
from headrace.storage.redis.library import library
from headrace.storage.redis.storage import RedisStorage
from headrace.testing.contract.schedule_steps import (
    a_schedule,
    an_occurrence,
    deletion,
    fire,
    listed,
    names,
    put,
    read,
    take,
    write,
)
from headrace.testing.contract.steps import QUEUE
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer


@pytest.fixture
async def proxy(redis_server: RedisServer) -> AsyncIterator[Proxy]:
    with redis_server.client() as client:
        client.flushall()
    async with Proxy(redis_server.port) as proxy:
        yield proxy


@pytest.fixture
async def storage(proxy: Proxy) -> AsyncIterator[Storage]:
    """Return a storage whose replies may get lost, on a server that knows the functions."""
    storage = RedisStorage(proxy.url).for_tenant("acme")
    assert await listed(storage) == [[]]
    yield storage
    await storage.aclose()


def function(verb: str) -> bytes:
    return library().function(verb).encode()


async def test_an_occurrence_is_fired_once(proxy: Proxy, storage: Storage) -> None:
    occurrences = [an_occurrence(instant) for instant in (1, 2, 3)]
    for _ in range(3):
        lost = proxy.drop_next_reply(after=function("fire"))
        with pytest.raises(ReplyLost):
            await fire(storage, *occurrences)
        assert lost.is_set()
    assert await fire(storage, *occurrences) == ["duplicate"] * 3
    assert (await storage.stats(QUEUE)).queued == 3


async def test_a_schedule_is_made_changed_and_deleted_once(proxy: Proxy, storage: Storage) -> None:
    for verb, step, version in [
        ("write_schedules", a_schedule(history=(b"1",)), 1),
        ("change_schedules", a_schedule(expected=1, history=(b"2",)), 2),
        ("change_schedules", deletion(expected=2), None),
    ]:
        lost = proxy.drop_next_reply(after=function(verb))
        with pytest.raises(ReplyLost):
            await write(storage, step)
        assert lost.is_set()
        # Who repeats it hears that it is not what was expected, and reads it again.
        assert await write(storage, step) == [None]
        found = await read(storage)
        assert (found and found.version) == version
        if version:
            assert len(await storage.schedule_history("s")) == version
    assert await listed(storage) == [[]]


async def test_what_was_taken_is_handed_out_again_after_its_hold(
    proxy: Proxy, storage: Storage
) -> None:
    await put(storage)
    proxy.drop_next_reply(after=function("take_schedules"))
    with pytest.raises(ReplyLost):
        await take(storage, hold_ms=1)
    taken = await take(storage)
    while not taken.schedules:
        taken = await take(storage)
    assert names(taken.schedules) == ["s"]


async def test_a_release_joins_and_leaves_as_it_would_have(proxy: Proxy, storage: Storage) -> None:
    await storage.join_release("shop", "v1", alive_ms=60_000)
    proxy.drop_next_reply(after=function("join_release"))
    with pytest.raises(ReplyLost):
        await storage.join_release("shop", "v2", alive_ms=60_000)
    standing = await storage.join_release("shop", "v2", alive_ms=60_000)
    assert (standing.is_newest, standing.alive) == (True, ["v1", "v2"])
    proxy.drop_next_reply(after=function("leave_release"))
    with pytest.raises(ReplyLost):
        await storage.leave_release("shop", "v2")
    await storage.leave_release("shop", "v2")
    again = await storage.join_release("shop", "v2", alive_ms=60_000)
    assert again == standing


async def test_what_only_reads_is_asked_again_at_once(proxy: Proxy, storage: Storage) -> None:
    await put(storage, history=(b"1",))
    losses = [
        proxy.drop_next_reply(after=function(verb))
        for verb in ("read_schedules", "list_schedules", "schedule_history")
    ]
    assert await read(storage)
    assert await listed(storage) == [["s"]]
    assert await storage.schedule_history("s") == [b"1"]
    assert all(lost.is_set() for lost in losses)

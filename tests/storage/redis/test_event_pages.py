"""Bulk reads of events never walk a stream, and bear what strangers and older releases left."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from headrace.storage import EventLines, EventPlace, EventSpan, Storage
from headrace.storage.redis.storage import RedisStorage
from headrace.testing.contract.steps import QUEUE, ContractClient, a_job
from tests.storage.redis.conftest import ROOT
from tests.support.redis_server import RedisServer

KEY = f"{ROOT}:events"
ENTRIES = 50_000
FILL = """
for i = 1, tonumber(ARGV[1]) do
  redis.call('XADD', KEYS[1], 1000 + i .. '-1', 'n', '' .. 2 * i, 'events', 'a\\nb')
end
"""
LINE = "queued\tx\tsend\t0\t\t\t\t"


def place(entry: int) -> EventPlace:
    """Return that of one of many entries."""
    return EventPlace(f"{1000 + entry}-1", 2 * entry - 1, 2 * entry)


def add(server: redis.Redis, fields: dict[Any, Any]) -> str:
    """Add an entry, as a stranger might; return its id."""
    stream_id = server.xadd(KEY, fields)
    assert isinstance(stream_id, bytes)
    return stream_id.decode()


async def asked(storage: Storage, server: redis.Redis, at_ms: int) -> tuple[Any, dict[str, int]]:
    """Return a place, and how often the stream was looked at for it, by command."""
    server.config_resetstat()
    found = await storage.event_place(QUEUE, at_ms)
    stats = server.info("commandstats")
    return found, {
        name.removeprefix("cmdstat_"): said["calls"]
        for name, said in stats.items()
        if name.startswith("cmdstat_x")
    }


async def test_a_place_among_many_entries_is_found_without_a_walk(
    storage: Storage, server: redis.Redis
) -> None:
    server.eval(FILL, 1, KEY, ENTRIES)
    # An XREVRANGE up to an id before all entries would go through all of them.
    for at_ms in (-1, 0, 999, 1000):
        assert await asked(storage, server, at_ms) == (None, {"xrange": 1})
    for entry in (1, 2, ENTRIES // 2, ENTRIES):
        found = await asked(storage, server, 1000 + entry)
        assert found == (place(entry), {"xrange": 1, "xrevrange": 1})
    later = await asked(storage, server, 10**30)
    assert later == (place(ENTRIES), {"xrange": 1, "xrevrange": 1})
    assert await storage.event_span(QUEUE) == EventSpan(place(1), place(ENTRIES))
    assert await storage.event_lines(QUEUE, after="25000-1", until="25002-1") == [
        EventLines("25001-1", 48_002, b"a\nb"),
        EventLines("25002-1", 48_004, b"a\nb"),
    ]


@pytest.mark.parametrize(
    ("fields", "lines"),
    [
        ({"events": LINE}, LINE.encode()),
        ({"events": LINE, "n": "many"}, LINE.encode()),
        ({"events": f"{LINE}\n{LINE}", "n": "-7"}, f"{LINE}\n{LINE}".encode()),
        ({"rubbish": "1"}, b""),
        ({"events": b"\xff"}, b"\xff"),
    ],
    ids=["of an older release", "of a stranger", "negative", "without lines", "no text"],
)
async def test_an_entry_without_a_number_has_none(
    storage: Storage, server: redis.Redis, *, fields: dict[Any, Any], lines: bytes
) -> None:
    stream_id = add(server, fields)
    unknown = EventPlace(stream_id, 0, 0)
    assert await storage.event_lines(QUEUE) == [EventLines(stream_id, 0, lines)]
    assert await storage.event_span(QUEUE) == EventSpan(unknown, unknown)
    assert await storage.event_place(QUEUE, 10**15) == unknown
    await ContractClient(storage).enqueue(a_job())
    span = await storage.event_span(QUEUE)
    assert span.first == unknown
    assert span.last is not None
    assert (span.last.first, span.last.last) == (1, 1)


async def test_an_entry_with_more_lines_than_its_number_tells_begins_with_none(
    storage: Storage, server: redis.Redis
) -> None:
    stream_id = add(server, {"events": "\n".join([LINE] * 5), "n": 2})
    assert (await storage.event_span(QUEUE)).first == EventPlace(stream_id, 0, 2)


async def test_ids_are_compared_as_numbers_that_are_larger_than_those_of_lua(
    storage: Storage, server: redis.Redis
) -> None:
    sequences = (2**53 + 1, 2**53 + 2, 10**18)
    for n, sequence in enumerate(sequences, 1):
        server.xadd(KEY, {"events": LINE, "n": n}, id=f"1000-{sequence}")
    assert await storage.event_place(QUEUE, 1000) == EventPlace(f"1000-{10**18}", 3, 3)
    assert await storage.event_place(QUEUE, 999) is None


async def test_pages_outlive_a_server_that_is_killed() -> None:
    with RedisServer("--appendfsync", "always", appendonly=True) as server:
        storage = RedisStorage(server.url).for_tenant("acme")
        await ContractClient(storage).enqueue(a_job("a"), a_job("b"))
        before = await storage.event_lines(QUEUE)
        await storage.aclose()
        server.kill()
        server.start()
        assert await storage.event_lines(QUEUE) == before
        assert await storage.event_span(QUEUE) == EventSpan(before[0].place, before[0].place)
        await storage.aclose()

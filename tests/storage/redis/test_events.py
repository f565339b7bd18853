"""The numbers of events on a server that loses them, or on which a stranger has written."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import redis

from headrace.storage.base import Storage
from headrace.storage.readers import ReaderInfo
from headrace.storage.redis.storage import RedisStorage
from headrace.testing.contract.steps import QUEUE, ContractClient, a_job
from tests.storage.conftest import RedisSubject
from tests.storage.redis.conftest import ROOT
from tests.support.clock import KEY
from tests.support.redis_server import RedisServer
from tests.support.until import until


async def numbers(storage: Storage, after: str = "0") -> list[int]:
    """Return those of all events that are kept behind an entry."""
    return [event.number for event in (await storage.events(QUEUE, after=after)).events]


def server_ms(server: redis.Redis) -> int:
    seconds, micros = server.time()
    return int(seconds * 1000 + micros // 1000)


async def test_after_a_flush_numbers_begin_anew_behind_what_was_seen(
    subject: RedisSubject, client: ContractClient, server: redis.Redis
) -> None:
    await client.enqueue(a_job("a"), a_job("b"))
    seen = await subject.storage.events(QUEUE)
    server.flushall()
    server.set(KEY, 10**12)
    # The ids of a new stream begin with the server's millisecond, which must be another one.
    await until(lambda: server_ms(server) > int(seen.last_id.partition("-")[0]))
    await client.enqueue(a_job("c"))
    assert await numbers(subject.storage, seen.last_id) == [1]


async def test_an_entry_whose_number_a_stranger_wrote_gives_none(
    subject: RedisSubject, client: ContractClient, server: redis.Redis
) -> None:
    await client.enqueue(a_job("a"))
    line = "queued\tx\tsend\t0\t\t\t\t"
    entries: list[dict[Any, Any]] = [{}, {"n": "many"}, {"n": "-7"}]
    for strange in entries:
        strange["events"] = line
        server.xadd(f"{ROOT}:events", strange)
    await client.enqueue(a_job("b"))
    assert await numbers(subject.storage) == [1, 0, 0, 0, 2]


async def reader(storage: Storage) -> ReaderInfo:
    """Return what is known of the only reader."""
    [found] = await storage.readers(QUEUE)
    return found


async def test_after_a_flush_nobody_reads_until_it_acknowledges_again(
    subject: RedisSubject, client: ContractClient, server: redis.Redis
) -> None:
    storage = subject.storage
    await client.enqueue(a_job("a"), a_job("b"))
    seen = await storage.events(QUEUE)
    await storage.acknowledge(QUEUE, "archive", seen.last_id)
    server.flushall()
    server.set(KEY, 10**12)
    assert await storage.readers(QUEUE) == []
    # What it has seen is not there any more, and nothing of the new events counts as seen.
    await storage.acknowledge(QUEUE, "archive", seen.last_id)
    await client.enqueue(a_job("c"))
    known = await reader(storage)
    assert (known.stream_id, known.number, known.behind) == ("0-0", 0, 1)


@pytest.mark.parametrize(
    "word", ["", "rubbish", "1-1", "1-1 1", "1-1 x 1", "1 2 3", "1-1 1 1 1", b"\xff"]
)
async def test_a_reader_whose_place_a_stranger_wrote_has_seen_nothing_and_is_dropped(
    subject: RedisSubject, client: ContractClient, server: redis.Redis, word: str | bytes
) -> None:
    storage = subject.storage
    await client.enqueue(a_job("a"))
    last_id = (await storage.events(QUEUE)).last_id
    await storage.acknowledge(QUEUE, "archive", last_id)
    server.hset(f"{ROOT}:readers", "archive", word)
    known = await reader(storage)
    assert (known.stream_id, known.number, known.behind, known.at_ms) == ("0-0", 0, 1, 0)
    await storage.acknowledge(QUEUE, "archive", last_id)
    assert (await reader(storage)).stream_id == last_id
    server.hset(f"{ROOT}:readers", "archive", word)
    await storage.prune(QUEUE)
    assert await storage.readers(QUEUE) == []


async def test_a_flag_without_readers_is_taken_down_by_the_sweep(
    subject: RedisSubject, client: ContractClient, server: redis.Redis
) -> None:
    storage = subject.storage
    await storage.acknowledge(QUEUE, "archive", "0")
    server.delete(f"{ROOT}:readers")
    await storage.prune(QUEUE)
    assert server.hget(f"{ROOT}:config", "has_readers") is None


async def test_a_reader_whose_queue_lost_its_settings_holds_again_from_the_next_word_on(
    subject: RedisSubject, client: ContractClient, server: redis.Redis
) -> None:
    storage = subject.storage
    await storage.acknowledge(QUEUE, "archive", "0")
    server.delete(f"{ROOT}:config")
    await storage.acknowledge(QUEUE, "archive", "0")
    assert server.hget(f"{ROOT}:config", "has_readers") == b"1"


async def test_with_nothing_but_later_entries_the_stream_is_not_searched(
    subject: RedisSubject, client: ContractClient, server: redis.Redis
) -> None:
    # XREVRANGE would go through all of it.
    await client.enqueue(*(a_job(f"{n}") for n in range(500)))
    server.config_resetstat()
    for stream_id in ("0", "1-1"):
        await subject.storage.acknowledge(QUEUE, "archive", stream_id)
    assert "cmdstat_xrevrange" not in server.info("commandstats")
    await subject.storage.acknowledge(QUEUE, "archive", "9999999999999-0")
    assert "cmdstat_xrevrange" in server.info("commandstats")


async def test_numbers_and_readers_outlive_a_server_that_is_killed() -> None:
    with RedisServer("--appendfsync", "always", appendonly=True) as server:
        storage = RedisStorage(server.url).for_tenant("acme")
        await ContractClient(storage).enqueue(a_job("a"), a_job("b"))
        await storage.acknowledge(QUEUE, "archive", (await storage.events(QUEUE)).last_id)
        before = await reader(storage)
        await storage.aclose()
        server.kill()
        server.start()
        await ContractClient(storage).enqueue(a_job("c"), number=2)
        assert await numbers(storage, before.stream_id) == [3]
        assert await reader(storage) == msgspec.structs.replace(before, behind=1)
        await storage.aclose()

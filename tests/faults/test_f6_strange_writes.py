"""F6: strange keys and words of bulk writes are set aside, and hold nobody up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress

import pytest
import redis

from headrace.errors import StageLost
from headrace.storage.base import Storage
from headrace.storage.redis.calls.packing import pack
from headrace.storage.values import CommitOutcome
from headrace.testing.contract.bulk_steps import ContractWriter, commit_stages, publish_all
from headrace.testing.contract.steps import HOUR_MS, QUEUE, a_job
from tests.storage.conftest import RedisSubject
from tests.support import leaks
from tests.support.redis_server import RedisServer

ROOT = "hr:{acme:mail}"
KEYS = {"stage": f"{ROOT}:stage:t:w", "write": f"{ROOT}:write:w", "committed": f"{ROOT}:committed"}


@pytest.fixture
def server(redis_server: RedisServer) -> Iterator[redis.Redis]:
    with redis_server.client() as server:
        server.flushall()
        yield server
        server.flushall()


@pytest.fixture
async def storage(redis_server: RedisServer, server: redis.Redis) -> AsyncIterator[Storage]:
    subject = RedisSubject(redis_server.url)
    yield subject.storage
    await subject.aclose()


def a_writer(storage: Storage, name: str = "t") -> ContractWriter:
    return ContractWriter(storage, "w", name)


async def stage(storage: Storage) -> None:
    with suppress(StageLost):
        await a_writer(storage).stage(a_job("a"))


async def commit(storage: Storage) -> None:
    with suppress(StageLost):
        await commit_stages(storage, a_writer(storage, "t").stage_info, write_id="w")


VERBS: dict[str, Callable[[Storage], Awaitable[object]]] = {
    "stage": stage,
    "commit": commit,
    "publish": lambda storage: storage.publish(QUEUE),
    "discard": lambda storage: storage.discard(QUEUE, "w", ["t"]),
    "read_write": lambda storage: storage.read_write(QUEUE, "w"),
    "delete_queue": lambda storage: storage.delete_queue(QUEUE),
}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("verb", VERBS)
async def test_no_verb_fails_when_a_key_turns_strange(
    storage: Storage, server: redis.Redis, *, kind: str, verb: str
) -> None:
    writer = a_writer(storage)
    await writer.stage(a_job("a"))
    await writer.commit()
    server.delete(KEYS[kind])
    server.set(KEYS[kind], "a stranger's")
    await VERBS[verb](storage)


@pytest.mark.parametrize("kind", KEYS)
async def test_a_write_goes_on_as_if_a_strange_key_were_not_there(
    storage: Storage, server: redis.Redis, *, kind: str
) -> None:
    server.set(KEYS[kind], "a stranger's")
    writer = a_writer(storage)
    await writer.stage(a_job("a"))
    await writer.stage(a_job("b"))
    assert await writer.commit() is CommitOutcome.COMMITTED
    await publish_all(storage)
    info = await storage.read_write(QUEUE, "w")
    assert info is not None
    assert (info.jobs, info.added, info.is_published) == (2, 2, True)
    assert leaks.problems(server) == []
    assert any(f.topic == "data" and kind in f.detail for f in await storage.diagnose())


RUBBISH = {
    "nothing": b"",
    "no list": pack(["a"])[5:],
    "a list that is cut": pack(["a", "010", "send", "[]"])[:-1],
    "no words": pack([]),
    "a number": b"\x91\x05",
    "a list of a list": b"\x91\x91\x05",
    "no kind": pack(["a", "rubbish", "send", "[]"]),
    "no kind of jobs that are alike": pack(["\t991", "send", "a", "[]"]),
    "no payload": pack(["\t015", "send", "a"]),
    "no pairs": pack(["a", "005", "send", "[]"]),
    "bytes": b"\xff\xfe",
}


@pytest.mark.parametrize("words", RUBBISH.values(), ids=RUBBISH)
async def test_words_that_are_no_jobs_hold_up_no_publication(
    storage: Storage, server: redis.Redis, *, words: bytes
) -> None:
    first, second = a_writer(storage, "t"), a_writer(storage, "u")
    await first.stage(a_job("a"))
    await second.stage(a_job("b"))
    await commit_stages(storage, first.stage_info, second.stage_info, write_id="w")
    server.execute_command("LSET", KEYS["stage"], 0, words)
    await publish_all(storage)
    assert (await storage.stats(QUEUE)).queued == 1
    info = await storage.read_write(QUEUE, "w")
    assert info is not None
    assert (info.jobs, info.added, info.is_published) == (2, 1, True)
    assert leaks.problems(server) == []


@pytest.mark.parametrize("name", [b"", b"no colon", b"\xff:\xfe", b"nobody:w"])
async def test_a_strange_name_on_the_list_holds_up_no_publication(
    storage: Storage, server: redis.Redis, *, name: bytes
) -> None:
    server.rpush(KEYS["committed"], name)
    writer = a_writer(storage)
    await writer.stage(a_job("a"))
    await writer.commit()
    await publish_all(storage)
    assert (await storage.stats(QUEUE)).queued == 1


@pytest.mark.parametrize("field", ["batch", "stages_left", "jobs", "added", "keep_ms", "finished"])
@pytest.mark.parametrize("word", ["rubbish", "-1", "9" * 40, b"\xff"])
async def test_rubbish_in_a_write_stops_nobody(
    storage: Storage, server: redis.Redis, *, field: str, word: str | bytes
) -> None:
    writer = a_writer(storage)
    await writer.stage(a_job("a"))
    await writer.commit()
    server.hset(KEYS["write"], field, word)
    await storage.read_write(QUEUE, "w")
    await publish_all(storage)
    assert (await storage.stats(QUEUE)).queued == 1
    assert 0 < server.pttl(KEYS["write"]) <= 7 * 24 * HOUR_MS
    again = a_writer(storage, "v")
    await again.stage(a_job("b"))
    assert await again.commit(batch=1) is CommitOutcome.COMMITTED

"""The Lua library: loaded when it is missing (BC-68), and beside that of other releases (G17)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import redis

from headrace import App
from headrace.job import JobState
from headrace.storage.base import VERBS as VERBS_OF_THE_PORT
from headrace.storage.base import Storage
from headrace.storage.redis.library import assemble, library, lua_folder
from headrace.storage.redis.storage import RedisStorage
from headrace.testing.contract.fixtures import Dump
from headrace.testing.contract.schedule_steps import (
    a_schedule,
    an_occurrence,
    deletion,
    fire,
    put,
    take,
    write,
)
from headrace.testing.contract.steps import (
    DEATH,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    completed,
    ids,
    state_of,
)
from tests.support.clock import CLOCK, library_with_test_clock
from tests.support.redis_server import RedisServer


async def join(storage: Storage) -> tuple[bool, list[str]]:
    """Join as a release, and return all but whether it was new."""
    standing = await storage.join_release("shop", "v1", alive_ms=1)
    return standing.is_newest, standing.alive


VERBS: dict[str, Callable[[Storage], Awaitable[object]]] = {
    "beats": lambda storage: storage.beats(QUEUE),
    "cancel": lambda storage: storage.cancel(QUEUE, ["x"]),
    "configure": lambda storage: storage.configure(QUEUE, history=1),
    "event_lines": lambda storage: storage.event_lines(QUEUE),
    "event_place": lambda storage: storage.event_place(QUEUE, 10**15),
    "event_span": lambda storage: storage.event_span(QUEUE),
    "events": lambda storage: storage.events(QUEUE),
    "export": lambda storage: storage.export(QUEUE, JobState.FAILED),
    "fire": lambda storage: fire(storage, an_occurrence(5), until_ms=0),
    "forget": lambda storage: storage.forget(QUEUE, "nobody"),
    "get": lambda storage: storage.get(QUEUE, "x"),
    "held": lambda storage: storage.held(QUEUE, "nobody"),
    "join_release": lambda storage: join(storage),
    "leave_release": lambda storage: storage.leave_release("shop", "v1"),
    "list_jobs": lambda storage: storage.list_jobs(QUEUE, JobState.QUEUED),
    "list_schedules": lambda storage: storage.list_schedules(),
    "outcomes": lambda storage: storage.outcomes(QUEUE, ["x"]),
    "pause": lambda storage: storage.pause(QUEUE),
    "prune": lambda storage: storage.prune(QUEUE),
    "purge": lambda storage: storage.purge(QUEUE, JobState.QUEUED, ["x"]),
    "put_back": lambda storage: storage.put_back(QUEUE, "nobody", []),
    "queues": lambda storage: storage.queues(),
    "read_schedules": lambda storage: storage.read_schedules(["s"]),
    "reap": lambda storage: storage.reap(QUEUE, "nobody", seen=0, error=DEATH),
    "redrive": lambda storage: storage.redrive(QUEUE, ["x"]),
    "resume": lambda storage: storage.resume(QUEUE),
    "retire": lambda storage: storage.retire(QUEUE, "nobody"),
    "schedule_history": lambda storage: storage.schedule_history("s"),
    "stats": lambda storage: storage.stats(QUEUE),
    "take_schedules": lambda storage: take(storage),
    "watch": lambda storage: storage.watch(QUEUE, ["x"], channel=""),
    "workers": lambda storage: storage.workers(QUEUE),
    "write_schedules": lambda storage: write(storage, a_schedule(expected=7)),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_a_verb_works_after_the_functions_were_flushed(
    storage: Storage, server: redis.Redis, verb: str
) -> None:
    server.function_flush()
    expected = await VERBS[verb](storage)
    server.function_flush()
    assert await VERBS[verb](storage) == expected


async def test_a_jobs_whole_life_survives_flushes_between_all_calls(
    storage: Storage,
    client: ContractClient,
    worker: ContractIncarnation,
    server: redis.Redis,
    dump: Dump,
) -> None:
    server.function_flush()
    assert await client.enqueue(a_job(), number=1) == ["queued"]
    server.function_flush()
    before = await dump()
    assert await client.enqueue(a_job(), number=1) == ["queued"]
    assert await dump() == before
    server.function_flush()
    assert not worker.beat().is_gone
    server.function_flush()
    job = await worker.claim_one()
    server.function_flush()
    assert await worker.settle(job, completed(b"1"))
    assert await state_of(storage) is JobState.COMPLETED


async def test_a_schedules_whole_life_survives_flushes_between_all_calls(
    storage: Storage, server: redis.Redis
) -> None:
    server.function_flush()
    await put(storage, history=(b"1",))
    server.function_flush()
    [taken] = (await take(storage)).schedules
    server.function_flush()
    assert await fire(storage, an_occurrence(5)) == ["queued"]
    server.function_flush()
    assert await fire(storage, an_occurrence(5)) == ["duplicate"]
    server.function_flush()
    assert await write(storage, a_schedule(expected=taken.version, history=(b"2",))) == [2]
    server.function_flush()
    assert await storage.schedule_history("s") == [b"2", b"1"]
    server.function_flush()
    assert await write(storage, deletion(expected=2)) == [0]


async def test_a_script_flush_harms_nothing(client: ContractClient, server: redis.Redis) -> None:
    assert await client.enqueue(a_job("a")) == ["queued"]
    server.script_flush()
    assert await client.enqueue(a_job("b")) == ["queued"]


async def test_a_bulk_keeps_its_order_on_a_server_that_has_never_seen_the_functions(
    redis_server: RedisServer, server: redis.Redis
) -> None:
    # G5: two calls of a queue are in flight at once, and so are those of its neighbour.
    for _ in range(20):
        server.flushall()
        server.function_flush()
        async with App[None](redis_server.url) as app:

            @app.task
            async def note(number: int) -> None:
                raise AssertionError(number)

            calls = [note.options(queue="left"), note.options(queue="right")]
            handles = await app.enqueue_many(calls[n % 3 % 2].job(n) for n in range(12))
            for queue in ("left", "right"):
                waiting = [row.id async for row in app.queue(queue).jobs("queued")]
                assert waiting == [handle.id for handle in handles if handle.queue == queue]


@pytest.fixture
async def newer(storage: Storage, redis_server: RedisServer) -> AsyncIterator[RedisStorage]:
    """Return a storage of another release, whose library differs by a comment."""
    source = assemble({"clock": CLOCK + "-- the next release\n"})
    newer = RedisStorage(redis_server.url, source=source).for_tenant("acme")
    yield newer
    await newer.aclose()


async def test_two_releases_share_a_queue(
    storage: Storage, newer: RedisStorage, worker: ContractIncarnation, client: ContractClient
) -> None:
    new_client = ContractClient(newer, "c2")
    new_worker = await ContractIncarnation(newer, "new").register()
    await client.enqueue(a_job("a"))
    await new_client.enqueue(a_job("b"))
    assert ids(await new_worker.claim(1)) == ["a"]
    assert ids(await worker.claim(1)) == ["b"]
    await new_worker.die()
    again = await worker.claim_one()
    assert (again.id, again.stalls) == ("a", 1)
    assert await worker.settle(again, completed())
    assert await state_of(newer, "a") is JobState.COMPLETED


async def test_other_releases_libraries_are_named_and_removed_on_demand(
    storage: Storage, newer: RedisStorage, server: redis.Redis
) -> None:
    server.function_flush()
    await storage.pause(QUEUE)
    await newer.resume(QUEUE)
    mine = library_with_test_clock().name
    loaded = {entry[1].decode() for entry in server.function_list()}
    assert len(loaded) == 2
    [finding] = [found for found in await storage.diagnose() if found.topic == "functions"]
    assert (finding.level, loaded - {mine} <= set(re.findall(r"\w+", finding.detail))) == (
        "warning",
        True,
    )
    assert await storage.tidy() == list(loaded - {mine})
    assert [entry[1].decode() for entry in server.function_list()] == [mine]
    # The other release loads its own again.
    await newer.pause(QUEUE)
    await storage.resume(QUEUE)


def test_the_server_knows_of_every_function_what_its_verb_is(server: redis.Redis) -> None:
    ours = library()
    server.function_flush()
    server.function_load(ours.source)
    [entry] = server.function_list(ours.name)
    functions = entry[entry.index(b"functions") + 1]
    for function in functions:
        words = dict(zip(function[::2], function[1::2], strict=True))
        verb = VERBS_OF_THE_PORT.get(words[b"name"].decode().removeprefix(f"{ours.name}_"))
        if verb is not None:
            flags = set(words[b"flags"])
            assert (b"no-writes" in flags) == verb.reads, words
            # What a server whose memory is full refuses.
            assert verb.grows == (not flags & {b"allow-oom", b"no-writes"}), words


def test_the_name_follows_the_source() -> None:
    assert assemble().name == library().name
    assert assemble({"clock": CLOCK}).name != library().name
    assert re.fullmatch(r"headrace_[0-9a-f]{8}", library().name)


def test_every_function_is_registered_under_the_librarys_name() -> None:
    registered = set(re.findall(r"function_name = '(\w+)'", library().source))
    verbs = {path.stem for path in (lua_folder() / "functions").glob("*.lua")}
    assert registered == {library().function(verb) for verb in verbs}


def test_the_source_is_ascii() -> None:
    # Python keeps a second copy, in UTF-8, of any other text that goes to the server.
    assert library().source.isascii()


def test_every_lib_file_is_part_of_the_library() -> None:
    for path in (lua_folder() / "lib").glob("*.lua"):
        assert path.read_text() in library().source

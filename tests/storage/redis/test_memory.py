"""A server whose memory is full takes no jobs, and yet its workers drain (G15)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import redis

from headrace.errors import StorageFull
from headrace.job import JobState
from headrace.storage.base import Storage
from headrace.storage.values import CallId, Settlement
from headrace.testing.contract import Subject
from headrace.testing.contract.bulk_steps import ContractWriter, report_of
from headrace.testing.contract.fixtures import Dump
from headrace.testing.contract.schedule_steps import (
    a_schedule,
    an_occurrence,
    deletion,
    fire,
    listed,
    names,
    put,
    take,
    write,
)
from headrace.testing.contract.steps import (
    ENDED,
    QUEUE,
    STATES,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    cancelled,
    completed,
    failed,
    ids,
    retried,
    state_of,
    unknown_task,
)
from tests.storage.conftest import RedisSubject, in_order
from tests.support.redis_server import RedisServer


@pytest.fixture(scope="module")
def small_server() -> Iterator[RedisServer]:
    """Run a server whose memory can be filled without harm to other tests."""
    with RedisServer() as server:
        yield server


@pytest.fixture
def server(small_server: RedisServer) -> Iterator[redis.Redis]:
    with small_server.client() as client:
        yield client


@pytest.fixture
async def subject(small_server: RedisServer, server: redis.Redis) -> AsyncIterator[Subject]:
    give_memory(server)
    server.flushall()
    async with in_order(RedisSubject(small_server.url)) as subject:
        yield subject


def fill_memory(server: redis.Redis) -> None:
    """Let the server use more than it may."""
    server.config_set("maxmemory", 1)


def give_memory(server: redis.Redis) -> None:
    server.config_set("maxmemory", 0)


async def test_enqueue_fails_with_a_typed_error_and_writes_nothing(
    client: ContractClient, dump: Dump, server: redis.Redis
) -> None:
    await client.enqueue(a_job("before"))
    fill_memory(server)
    before = await dump()
    with pytest.raises(StorageFull, match="maxmemory"):
        await client.enqueue(a_job(), a_job("y", delay_ms=1), number=2)
    assert await dump() == before
    give_memory(server)
    # The same call may be repeated.
    assert await client.enqueue(a_job(), a_job("y", delay_ms=1), number=2) == [
        "queued",
        "scheduled",
    ]


async def test_the_first_enqueue_to_a_queue_fails_the_same(
    storage: Storage, client: ContractClient, dump: Dump, server: redis.Redis
) -> None:
    await client.enqueue(a_job())
    fill_memory(server)
    before = await dump()
    with pytest.raises(StorageFull):
        await storage.enqueue("new", [a_job()], call=CallId("c1", 1))
    assert await dump() == before


async def test_fire_fails_the_same_and_may_be_repeated(
    storage: Storage, dump: Dump, server: redis.Redis
) -> None:
    await fire(storage, an_occurrence(5))
    fill_memory(server)
    before = await dump()
    with pytest.raises(StorageFull, match="maxmemory"):
        await fire(storage, an_occurrence(6))
    assert await dump() == before
    give_memory(server)
    assert await fire(storage, an_occurrence(5), an_occurrence(6)) == ["duplicate", "queued"]


async def test_a_new_schedule_fails_the_same_and_takes_the_changes_beside_it_along(
    storage: Storage, dump: Dump, server: redis.Redis
) -> None:
    await put(storage)
    fill_memory(server)
    before = await dump()
    for writes in ([a_schedule("new")], [a_schedule("new"), a_schedule(expected=1), deletion()]):
        with pytest.raises(StorageFull, match="maxmemory"):
            await write(storage, *writes)
        assert await dump() == before


async def test_schedules_are_taken_changed_deleted_and_read(
    storage: Storage, server: redis.Redis
) -> None:
    await put(storage, "a", history=(b"1",))
    await put(storage, "b")
    fill_memory(server)
    assert names((await take(storage, channel="hr:{acme}:channel:0")).schedules) == ["a", "b"]
    paused = a_schedule("a", expected=1, body=b"paused", history=(b"2",))
    assert await write(storage, paused, deletion("b"), wakes=True) == [2, 0]
    assert await listed(storage) == [["a"]]
    assert await storage.schedule_history("a") == [b"2", b"1"]
    assert (await storage.join_release("shop", "v1", alive_ms=9)).is_newest
    await storage.leave_release("shop", "v1")
    give_memory(server)


async def test_redrive_fails_the_same(
    storage: Storage,
    client: ContractClient,
    worker: ContractIncarnation,
    dump: Dump,
    server: redis.Redis,
) -> None:
    await bring(JobState.FAILED, client, worker)
    fill_memory(server)
    before = await dump()
    with pytest.raises(StorageFull):
        await storage.redrive(QUEUE, ["x"])
    assert await dump() == before


async def test_a_report_fails_the_same_and_its_attempt_ends_as_ever(
    storage: Storage,
    client: ContractClient,
    worker: ContractIncarnation,
    dump: Dump,
    server: redis.Redis,
) -> None:
    await client.enqueue(a_job())
    job = await worker.claim_one()
    await worker.report(job, 0.5, chunks=[b"0"])
    fill_memory(server)
    before = await dump()
    with pytest.raises(StorageFull):
        await worker.report(job, 0.75, chunks=[b"1"], first=1)
    assert await dump() == before
    assert (await storage.output(QUEUE, "x")).chunks == [b"0"]
    assert await worker.settle(job, completed())


async def test_workers_drain(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    await client.enqueue(*(a_job(f"{n}", b"." * 100) for n in range(6)))
    fill_memory(server)
    jobs = await worker.claim()
    assert len(jobs) == 6
    assert not worker.beat().is_gone
    outcomes = [
        completed(b"." * 1000), retried(0), failed(), cancelled(), unknown_task(0),
        completed(keep_ms=0),
    ]  # fmt: skip
    pairs = zip(jobs, outcomes, strict=True)
    done = [Settlement(job.id, job.claim, 1, outcome) for job, outcome in pairs]
    assert await worker.settle_all(*done) == [True] * 6
    again = await worker.claim()
    assert ids(again) == ["1", "4"]
    await storage.put_back(QUEUE, worker.name, [(again[0].id, again[0].claim)])
    assert await worker.settle(again[1], completed())
    assert await storage.retire(QUEUE, worker.name) == 0


async def test_a_worker_that_starts_meanwhile_drains_too(
    client: ContractClient, redis_server_storage: Storage, server: redis.Redis
) -> None:
    await client.enqueue(a_job())
    # Its first call loads the library, which a full server refuses: it is there already.
    fill_memory(server)
    worker = await ContractIncarnation(redis_server_storage, "fresh").register()
    assert await worker.settle(await worker.claim_one(), completed())


@pytest.fixture
async def redis_server_storage(small_server: RedisServer) -> AsyncIterator[Storage]:
    """Return another process's storage, which has seen no queue yet."""
    subject = RedisSubject(small_server.url)
    yield subject.storage
    await subject.aclose()


async def test_jobs_are_cancelled_and_purged_and_the_dead_are_reaped(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    for state in STATES:
        if state is not JobState.ACTIVE:
            await bring(state, client, worker, state.value, priority=5 - STATES.index(state) // 2)
            if state is JobState.QUEUED:
                await storage.cancel(QUEUE, [state.value])
                await storage.purge(QUEUE, JobState.CANCELLED, [state.value])
    await bring(JobState.ACTIVE, client, worker)
    await client.enqueue(a_job("queued"))
    fill_memory(server)
    assert await storage.cancel(QUEUE, ["queued", "x"]) == ["cancelled", "requested"]
    assert worker.beat().cancel_ids == ["x"]
    for state in ENDED:
        assert await storage.purge(QUEUE, state, [state.value]) == 1
    await worker.die()
    assert await state_of(storage) is JobState.CANCELLED
    assert await storage.prune(QUEUE) == ""


async def test_a_waiter_is_refused_with_a_typed_error_and_works_again_later(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    await client.enqueue(a_job())
    waiter = storage.open_waiter(QUEUE, worker.name, "default")
    try:
        fill_memory(server)
        with pytest.raises(StorageFull):
            await waiter.wait(0.01)
        give_memory(server)
        assert await waiter.wait(1)
    finally:
        await waiter.aclose()


async def test_pausing_watching_and_reading_work(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    await client.enqueue(a_job())
    fill_memory(server)
    await storage.pause(QUEUE)
    assert (await worker.ask()).is_paused
    await storage.resume(QUEUE)
    [end] = await storage.watch(QUEUE, ["x"], channel="hr:{acme}:channel:0")
    assert end.state is JobState.QUEUED
    assert (await storage.stats(QUEUE)).queued == 1
    assert [row.id for row in (await storage.list_jobs(QUEUE, JobState.QUEUED)).rows] == ["x"]
    give_memory(server)


async def test_staging_fails_the_same_and_what_is_staged_is_committed_and_discarded(
    storage: Storage, dump: Dump, server: redis.Redis
) -> None:
    kept, dropped = ContractWriter(storage, name="t1"), ContractWriter(storage, name="t2")
    await kept.stage(a_job("a"))
    await dropped.stage(a_job("b"))
    fill_memory(server)
    before = await dump()
    for writer in (kept, ContractWriter(storage, name="t3")):
        with pytest.raises(StorageFull, match="maxmemory"):
            await writer.stage(a_job("c"))
    assert await dump() == before
    assert await kept.commit() == "committed"
    assert await dropped.discard() == 1
    assert (await report_of(storage)).stages_left == 1


async def test_a_publication_fails_the_same_and_goes_on_when_there_is_room(
    storage: Storage, dump: Dump, server: redis.Redis
) -> None:
    writer = ContractWriter(storage)
    await writer.stage(a_job("a"))
    await writer.stage(a_job("b"))
    await writer.commit()
    assert await storage.publish(QUEUE) == 1
    fill_memory(server)
    before = await dump()
    with pytest.raises(StorageFull, match="maxmemory"):
        await storage.publish(QUEUE)
    assert await dump() == before
    give_memory(server)
    assert await storage.publish(QUEUE) == 0
    assert (await report_of(storage)).added == 2

"""The user that docs/operations.md makes for a tenant can do what its workers do, and no more."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import redis

from headrace.errors import StorageRefused
from headrace.job import JobState
from headrace.storage.base import Storage
from headrace.storage.event_pages import EventSpan
from headrace.storage.redis.storage import RedisStorage
from headrace.testing.contract.bulk_steps import ContractWriter, report_of
from headrace.testing.contract.schedule_steps import (
    a_schedule,
    an_occurrence,
    deletion,
    fire,
    listed,
    names,
    read,
    take,
    write,
)
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    completed,
    state_of,
)
from headrace.testing.contract.watch import next_end, open_channel
from tests.support.redis_server import RedisServer

DOCUMENT = Path(__file__).parents[3] / "docs" / "operations.md"


def set_user(server: redis.Redis, name: str) -> None:
    """Make the user of that name as the document does."""
    line = re.search(rf"^ACL SETUSER {name} .*$", DOCUMENT.read_text(), re.MULTILINE)
    assert line is not None
    server.execute_command(*line[0].split())


@pytest.fixture
async def storage(redis_server: RedisServer, server: redis.Redis) -> AsyncIterator[Storage]:
    """Return the storage of that user."""
    server.flushall()
    set_user(server, "shop")
    url = redis_server.url.replace("redis://", "redis://shop:password@")
    storage = RedisStorage(url).for_tenant("shop")
    yield storage
    await storage.aclose()
    server.execute_command("ACL", "DELUSER", "shop")


async def test_jobs_are_enqueued_run_and_waited_for(storage: Storage) -> None:
    worker = await ContractIncarnation(storage, "w1").register()
    async with open_channel(storage) as channel:
        await ContractClient(storage).enqueue(a_job(channel=channel.name))
        assert await worker.settle(await worker.claim_one(), completed())
        assert (await next_end(channel)).state is JobState.COMPLETED
    assert await storage.queues() == [QUEUE]
    assert await storage.retire(QUEUE, "w1") == 0


async def test_schedules_are_kept_taken_and_fired(storage: Storage) -> None:
    async with open_channel(storage) as channel:
        await take(storage, channel=channel.name)
        assert await write(storage, a_schedule(app="shop", history=(b"1",)), wakes=True) == [1]
        assert (await next_end(channel)).id == ""
    assert names((await take(storage)).schedules) == ["s"]
    assert await fire(storage, an_occurrence(5)) == ["queued"]
    assert await state_of(storage, "s:5") is JobState.QUEUED
    assert await write(storage, a_schedule(app="bank", expected=1)) == [2]
    assert await read(storage) is not None
    assert await listed(storage, app="bank") == [["s"]]
    assert await storage.schedule_history("s") == [b"1"]
    assert (await storage.join_release("shop", "v1", alive_ms=9)).is_newest
    await storage.leave_release("shop", "v1")
    assert await write(storage, deletion(expected=2)) == [0]


async def test_a_user_that_only_reads_sees_what_there_is_and_changes_nothing(
    storage: Storage, redis_server: RedisServer, server: redis.Redis
) -> None:
    worker = await ContractIncarnation(storage, "w1").register()
    await ContractClient(storage).enqueue(a_job("x"), a_job("y"))
    await worker.settle(await worker.claim_one(), completed())
    set_user(server, "reader")
    url = redis_server.url.replace("redis://", "redis://reader:password@")
    reader = RedisStorage(url).for_tenant("shop")
    try:
        await reader.check()
        assert await reader.queues() == [QUEUE]
        [x, y] = await reader.outcomes(QUEUE, ["x", "y"])
        assert (x.result, y.state) == (b"1", JobState.QUEUED)
        assert await reader.get(QUEUE, "x") == await storage.get(QUEUE, "x")
        exported = (await storage.export(QUEUE, JobState.COMPLETED)).records
        assert (await reader.export(QUEUE, JobState.COMPLETED)).records == exported
        assert (await reader.stats(QUEUE)).history == 1
        assert (lines := await reader.event_lines(QUEUE))
        assert await reader.event_span(QUEUE) == EventSpan(lines[0].place, lines[-1].place)
        assert await reader.event_place(QUEUE, 2**60) == lines[-1].place
        assert len((await reader.list_jobs(QUEUE, JobState.QUEUED)).rows) == 1
        for call in (reader.pause(QUEUE), reader.watch(QUEUE, ["y"], channel="")):
            with pytest.raises(StorageRefused):
                await call
        with pytest.raises(StorageRefused):
            await reader.for_tenant("shop2").outcomes(QUEUE, ["x"])
    finally:
        await reader.aclose()
        server.execute_command("ACL", "DELUSER", "reader")


async def test_another_tenants_keys_are_refused(storage: Storage) -> None:
    others = storage.for_tenant("shop2")
    for call in (others.stats(QUEUE), others.list_schedules(), take(others)):
        with pytest.raises(StorageRefused):
            await call
    await others.aclose()


async def test_bulk_writes_are_staged_committed_published_and_discarded(storage: Storage) -> None:
    writer, loser = ContractWriter(storage, name="t1"), ContractWriter(storage, name="t2")
    await writer.stage(a_job("a"))
    await loser.stage(a_job("a"))
    assert await writer.commit() == "committed"
    assert await loser.discard() == 1
    assert await storage.publish(QUEUE) == 0
    assert (await report_of(storage)).added == 1
    await storage.cancel(QUEUE, ["a"])
    await storage.purge(QUEUE, JobState.CANCELLED, ["a"])
    assert await storage.delete_queue(QUEUE) == 0

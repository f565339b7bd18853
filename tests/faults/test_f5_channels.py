"""F5: a user who may not publish loses hints, and no call fails after its work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import redis

from headrace.job import JobState
from headrace.outcome import Outcome
from headrace.storage.base import Storage
from headrace.storage.redis.storage import RedisStorage
from headrace.testing.contract.schedule_steps import a_schedule, names, take, write
from headrace.testing.contract.steps import (
    ANY_OUTCOME,
    DEATH,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    failed,
    started,
    state_of,
)
from tests.support import leaks
from tests.support.redis_server import RedisServer

CHANNEL = "hr:{acme}:channel:0"
RIGHTS = "on >secret ~hr:{acme:* ~hr:{acme}:* resetchannels +@all"


@pytest.fixture
def server(redis_server: RedisServer) -> Iterator[redis.Redis]:
    with redis_server.client() as client:
        client.flushall()
        client.execute_command("ACL", "SETUSER", "acme", *RIGHTS.split())
        yield client
        client.execute_command("ACL", "DELUSER", "acme")


@pytest.fixture
async def storage(server: redis.Redis, redis_server: RedisServer) -> AsyncIterator[Storage]:
    """Open the tenant's storage as a user without any channel, as is Redis 7's default."""
    url = redis_server.url.replace("redis://", "redis://acme:secret@")
    storage = RedisStorage(url).for_tenant("acme")
    yield storage
    await storage.aclose()


@pytest.mark.parametrize("outcome", ANY_OUTCOME, ids=lambda o: type(o).__name__)
async def test_an_outcome_is_written_whole_when_nobody_may_be_told(
    storage: Storage, server: redis.Redis, outcome: Outcome
) -> None:
    worker = await ContractIncarnation(storage, "w1", channel=CHANNEL).register()
    client = ContractClient(storage)
    job = await started(client, worker, channel=CHANNEL)
    await client.enqueue(a_job("y", channel=CHANNEL))
    assert await worker.settle(job, outcome)
    assert leaks.problems(server) == []
    assert await storage.cancel(QUEUE, ["y"]) == ["cancelled"]
    assert leaks.problems(server) == []


async def test_cancel_expiry_purge_and_reap_are_whole_too(
    storage: Storage, server: redis.Redis
) -> None:
    worker = await ContractIncarnation(storage, "w1", channel=CHANNEL).register()
    client = ContractClient(storage)
    await started(client, worker, channel=CHANNEL, max_stalls=1)
    await client.enqueue(a_job("late", channel=CHANNEL, expires_at_ms=1))
    await client.enqueue(a_job("unwanted", channel=CHANNEL))
    assert await storage.cancel(QUEUE, ["x"]) == ["requested"]
    assert await storage.purge(QUEUE, JobState.QUEUED, ["unwanted"]) == 1
    assert await worker.claim() == []
    assert await state_of(storage, "late") is JobState.FAILED
    assert await storage.reap(QUEUE, "w1", seen=0, error=DEATH) == 0
    assert leaks.problems(server) == []


async def test_the_doctor_says_that_channels_are_refused(storage: Storage) -> None:
    worker = await ContractIncarnation(storage, "w1").register()
    job = await started(ContractClient(storage), worker, channel=CHANNEL)
    assert await worker.settle(job, failed())
    found = {f.topic: f for f in await storage.diagnose()}
    assert found["channels"].level == "warning"
    assert "&hr:{acme}:*" in found["channels"].detail


async def test_a_schedule_is_written_whole_when_no_scheduler_may_be_told(
    storage: Storage, server: redis.Redis
) -> None:
    await take(storage, channel=CHANNEL)
    writes = [a_schedule(name, app="shop", history=(b"1",)) for name in "ab"]
    assert await write(storage, *writes, wakes=True) == [1, 1]
    assert names((await take(storage)).schedules) == ["a", "b"]
    assert leaks.problems(server) == []
    [detail] = [found.detail for found in await storage.diagnose() if found.topic == "channels"]
    assert detail.startswith("schedules: 1 messages")

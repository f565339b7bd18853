"""G: a listing shows what can be shown of rubbish, and one bad queue fails no other's."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

import anyio
import pytest
import redis

from headrace.job import JobState
from headrace.storage.redis.storage import RedisStorage
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    failed,
    record_of,
    started,
)
from tests.support.redis_server import RedisServer

ROOT = "hr:{acme:mail}"


@pytest.fixture
async def storage(redis_url: str) -> AsyncIterator[RedisStorage]:
    storage = RedisStorage(redis_url).for_tenant("acme")
    yield storage
    await storage.aclose()


@pytest.fixture
async def server(storage: RedisStorage, redis_server: RedisServer) -> AsyncIterator[redis.Redis]:
    """Return a client of a server with rubbish wherever a listing looks."""
    client, worker = ContractClient(storage), await ContractIncarnation(storage, "w1").register()
    await worker.settle(await started(client, worker), failed())
    await client.enqueue(a_job("q"))
    with redis_server.client() as server:
        server.sadd("hr:{acme}:queues", b"\xff", "\x1b[31mred", "bad")
        server.hset(f"{ROOT}:counts", mapping={"active": "many", b"queued:\xff": "1"})
        server.hset(f"{ROOT}:worker:w1", mapping={"info": b"{\xff", "registered_ms": "long ago"})
        server.hset(f"{ROOT}:beats", mapping={b"\xff": b"\xff"})
        server.lset(f"{ROOT}:errors:x", 0, b"\xff")
        server.hset(f"{ROOT}:job:x", mapping={"error": b"\xff", "failures": "some"})
        server.xadd(f"{ROOT}:events", {"events": "rubbish"})
        server.xadd(f"{ROOT}:events", {"other": b"\xff"})
        server.zadd(f"{ROOT}:dead", {b"\xff": 1, b"y": float("inf")})
        server.set("hr:{acme:bad}:counts", "a stranger's")
        server.set("hr:{acme:bad}:beats", "a stranger's")
        yield server


async def test_every_reader_shows_what_can_be_read(
    storage: RedisStorage, server: redis.Redis
) -> None:
    assert await storage.queues() == ["bad", "mail"]
    stats = await storage.stats(QUEUE)
    assert (stats.queued, stats.active, stats.dead) == (1, 0, 3)
    assert {worker.incarnation for worker in await storage.workers(QUEUE)} == {"w1", "\ufffd"}
    record = await record_of(storage)
    assert (record.state, record.failures) == (JobState.FAILED, 0)
    assert [error.type for error in record.errors] == ["DamagedError"]
    assert [row.id for row in (await storage.list_jobs(QUEUE, JobState.FAILED)).rows] == ["x"]
    kinds = [event.kind.value for event in (await storage.events(QUEUE)).events]
    assert kinds == ["joined", "queued", "active", "failed", "queued"]


async def test_pages_go_on_behind_an_id_that_is_no_text(
    storage: RedisStorage, server: redis.Redis
) -> None:
    found: list[str] = []
    cursor = ""
    for _ in range(4):
        page = await storage.list_jobs(QUEUE, JobState.FAILED, cursor=cursor, limit=1)
        found += [row.id for row in page.rows]
        cursor = page.cursor
        if not cursor:
            break
    assert (found, cursor) == (["x"], "")


async def test_the_doctor_tells_of_names_that_are_no_queues(
    storage: RedisStorage, server: redis.Redis
) -> None:
    details = [f.detail for f in await storage.diagnose() if f.topic == "data"]
    assert any("2 of the 4 names" in detail for detail in details)


@pytest.mark.parametrize("output", ["table", "json"])
@pytest.mark.parametrize(
    "words", ["queue list", "queue stats", "workers", "job list", "job show x -q mail", "dead list"]
)
async def test_no_command_fails(
    server: redis.Redis, redis_url: str, words: str, output: str
) -> None:
    command = [sys.executable, "-m", "headrace", *words.split(), "-o", output]
    ran = await anyio.run_process([*command, "--url", redis_url, "--tenant", "acme"], check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b"mail" in ran.stdout

"""What strangers wrote among the places of ended jobs holds no export up."""

from __future__ import annotations

import pytest
import redis

from headrace.job import JobState
from headrace.storage.base import Storage
from headrace.testing.contract.export import Archive, end
from headrace.testing.contract.fixtures import Advance
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    failed,
)
from tests.storage.redis.conftest import ROOT

STRANGE = {b"\xff\xfe": 1.5, b"nobody": float("-inf"), b"a:b\n": -7, b"late": float("inf")}


@pytest.mark.parametrize("limit", [1, 2, 200])
async def test_places_that_are_no_jobs_are_passed_over(
    storage: Storage,
    client: ContractClient,
    worker: ContractIncarnation,
    advance: Advance,
    server: redis.Redis,
    *,
    limit: int,
) -> None:
    server.zadd(f"{ROOT}:dead", STRANGE)
    await end(client, worker, ["a", "b"], failed())
    server.zadd(f"{ROOT}:dead", {b"\xff%": await advance(0)})
    await advance(1)
    archive = Archive(storage, JobState.FAILED, limit=limit)
    assert await archive.read() == ["a", "b"]
    # The last place was a stranger's, and is gone on from.
    assert archive.pages[-1].cursor.startswith(f"failed:{QUEUE}:%")
    assert await archive.read() == []
    server.delete(f"{ROOT}:dead", f"{ROOT}:job:a", f"{ROOT}:job:b")


@pytest.mark.parametrize("kind", ["finished", "dead"])
async def test_places_of_the_wrong_type_are_none(
    storage: Storage, server: redis.Redis, kind: str
) -> None:
    server.set(f"{ROOT}:{kind}", "a stranger's")
    state = JobState.FAILED if kind == "dead" else JobState.COMPLETED
    assert (await storage.export(QUEUE, state)).records == []
    server.delete(f"{ROOT}:{kind}")


async def test_a_damaged_record_is_read_as_far_as_it_can_be(
    storage: Storage,
    client: ContractClient,
    worker: ContractIncarnation,
    advance: Advance,
    server: redis.Redis,
) -> None:
    await end(client, worker, ["a", "b", "c"], failed())
    await advance(1)
    server.hset(f"{ROOT}:job:a", "head", "?")
    server.hset(f"{ROOT}:job:b", mapping={"tier": "high", "reason": b"\xff"})
    server.delete(f"{ROOT}:errors:c")
    server.rpush(f"{ROOT}:errors:c", "no error")
    page = await storage.export(QUEUE, JobState.FAILED)
    assert [(r.id, r.priority, r.reason) for r in page.records] == [
        ("b", 5, "\ufffd"),
        ("c", 5, "exhausted"),
    ]
    assert [e.type for e in page.records[1].errors] == ["DamagedError"]
    [a, b, c] = await storage.outcomes(QUEUE, ["a", "b", "c"])
    assert (a.state, b.reason, c.error) == (None, "\ufffd", page.records[1].errors[0])
    server.flushall()

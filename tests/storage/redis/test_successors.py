"""What is kept of successors on Redis, and what becomes of them when something is lost."""

from __future__ import annotations

import pytest
import redis

from headrace.job import ClaimedJob, JobState
from headrace.outcome import Outcome
from headrace.storage.base import Storage
from headrace.storage.values import End
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    completed,
    failed,
    retried,
)
from headrace.update import Update, UpdateRunAt
from tests.storage.redis.conftest import ROOT
from tests.support import leaks

JOB, NEXT, BLOCKED, COUNTS = (f"{ROOT}:{kind}" for kind in ("job:x", "next:x", "blocked", "counts"))
BIG = b"." * 65
NUMBER = b'{"headers":{"n":12345678901234567890}}'
ALL = Update()


async def block(
    client: ContractClient, worker: ContractIncarnation, payload: bytes = b"[2]"
) -> ClaimedJob:
    """Have `x` be active, and its next one blocked; return the active one."""
    await client.enqueue(a_job(payload=b"[1]"))
    job = await worker.claim_one()
    await client.enqueue(a_job(payload=payload, update=ALL))
    return job


async def repair(storage: Storage) -> int:
    """Repair thoroughly, and return how much was put right."""
    done = await storage.repair(QUEUE, is_full=True)
    assert done.cursor == ""
    return done.mended


async def payload_of(storage: Storage, state: JobState) -> bytes | None:
    """Return the payload of `x`, which is in a state."""
    record = await storage.get(QUEUE, "x")
    assert record is not None
    assert record.state is state
    return record.payload


async def test_a_successor_is_one_key_and_a_place_until_it_comes_in(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    job = await block(client, worker, BIG)
    assert server.hget(NEXT, "payload") == BIG
    assert server.zrange(BLOCKED, 0, -1) == [b"x"]
    await worker.settle(job, completed())
    assert server.exists(NEXT, BLOCKED) == 0
    assert await payload_of(storage, JobState.QUEUED) == BIG


@pytest.mark.parametrize("payload", [b"[2]", BIG], ids=["small", "big"])
@pytest.mark.parametrize("before", [b"[1]", BIG + b"1"], ids=["of a small one", "of a big one"])
async def test_a_payload_lies_where_its_size_belongs_after_an_update(
    client: ContractClient, storage: Storage, server: redis.Redis, before: bytes, payload: bytes
) -> None:
    await client.enqueue(a_job(payload=before))
    await client.enqueue(a_job(payload=payload, update=ALL))
    assert await payload_of(storage, JobState.QUEUED) == payload
    assert server.exists(f"{ROOT}:payload:x") == (payload == BIG)
    assert server.hexists(JOB, "payload") == (payload != BIG)


async def test_an_update_takes_the_fields_away_that_it_does_not_ask_for(
    client: ContractClient, server: redis.Redis
) -> None:
    await client.enqueue(a_job(lane="gpu", priority=9, keep_ms=0, max_stalls=7, options=NUMBER))
    await client.enqueue(a_job(update=ALL))
    assert set(server.hkeys(JOB)) == {b"head", b"task", b"payload"}


async def test_nobody_rewrites_the_options_of_which_a_part_is_changed(
    client: ContractClient, storage: Storage, server: redis.Redis
) -> None:
    # BC-60: a number of 20 digits goes through as text.
    await client.enqueue(a_job(options=NUMBER + b'\n{"max_attempts":2}'))
    of_retries = Update(data=False, run_at=UpdateRunAt.NEVER)
    await client.enqueue(a_job(options=b'{}\n{"max_attempts":9}', update=of_retries))
    assert server.hget(JOB, "options") == NUMBER + b'\n{"max_attempts":9}'
    of_data = Update(run_at=UpdateRunAt.NEVER, retry=False)
    await client.enqueue(a_job(options=NUMBER, update=of_data))
    assert server.hget(JOB, "options") == NUMBER + b'\n{"max_attempts":9}'


async def test_the_successor_of_a_lost_record_comes_in_by_the_repair(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    await block(client, worker)
    server.delete(JOB)
    assert await repair(storage) > 0
    assert await payload_of(storage, JobState.QUEUED) == b"[2]"
    assert leaks.problems(server) == []
    assert await repair(storage) == 0


async def test_a_successor_changes_the_job_that_came_in_the_place_of_a_lost_record(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    await block(client, worker)
    server.delete(JOB)
    await client.enqueue(a_job(payload=b"[3]"))
    assert await repair(storage) > 0
    assert await payload_of(storage, JobState.QUEUED) == b"[2]"
    assert (await storage.stats(QUEUE)).blocked == 0


async def test_a_successor_is_that_of_the_job_that_has_started_in_the_place_of_a_lost_record(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    await block(client, worker)
    server.delete(JOB)
    await client.enqueue(a_job(payload=b"[3]"))
    job = await worker.claim_one()
    assert await repair(storage) > 0
    assert leaks.problems(server) == []
    await worker.settle(job, completed())
    assert await payload_of(storage, JobState.QUEUED) == b"[2]"


async def test_a_successor_whose_place_was_lost_comes_in_and_is_counted_by_the_repair(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    job = await block(client, worker)
    server.delete(BLOCKED)
    await worker.settle(job, failed())
    assert await payload_of(storage, JobState.QUEUED) == b"[2]"
    await repair(storage)
    assert leaks.problems(server) == []


@pytest.mark.parametrize("lost", [(BLOCKED,), (BLOCKED, JOB)], ids=["alone", "with the record"])
async def test_a_place_that_was_lost_is_given_back_by_who_looks_through_all_keys(
    storage: Storage,
    client: ContractClient,
    worker: ContractIncarnation,
    server: redis.Redis,
    lost: tuple[str, ...],
) -> None:
    await block(client, worker)
    server.delete(*lost)
    assert await repair(storage) > 0
    assert leaks.problems(server) == []
    is_blocked = (await storage.list_jobs(QUEUE, JobState.BLOCKED)).rows != []
    assert is_blocked == (JOB not in lost)


@pytest.mark.parametrize("outcome", [completed(), retried()], ids=["completed", "retried"])
async def test_a_job_goes_its_way_without_a_successor_that_was_lost(
    storage: Storage,
    client: ContractClient,
    worker: ContractIncarnation,
    server: redis.Redis,
    outcome: Outcome,
) -> None:
    job = await block(client, worker)
    server.delete(NEXT)
    await worker.settle(job, outcome)
    record = await storage.get(QUEUE, "x")
    assert (record is None) == (outcome == completed())
    assert leaks.problems(server) == []


async def test_a_place_of_no_successor_is_taken_away_by_the_repair(
    storage: Storage, client: ContractClient, server: redis.Redis
) -> None:
    await client.enqueue(a_job())
    server.zadd(BLOCKED, {"x": 1, "nobody": 2})
    server.hset(COUNTS, "blocked", 7)
    assert await repair(storage) == 3
    assert leaks.problems(server) == []
    assert await payload_of(storage, JobState.QUEUED) == b"[]"


async def test_the_successor_of_a_record_that_can_not_be_read_comes_in_at_its_end(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    job = await block(client, worker)
    server.hset(JOB, "head", "rubbish")
    await worker.settle(job, completed())
    assert await payload_of(storage, JobState.QUEUED) == b"[2]"
    assert leaks.problems(server) == []


@pytest.mark.parametrize("key", [NEXT, BLOCKED], ids=["the successor", "the places"])
async def test_a_key_of_the_wrong_type_is_set_aside(
    storage: Storage,
    client: ContractClient,
    worker: ContractIncarnation,
    server: redis.Redis,
    key: str,
) -> None:
    server.set(key, "a stranger's")
    job = await block(client, worker)
    assert (await storage.stats(QUEUE)).blocked == 1
    await worker.settle(job, completed())
    assert await payload_of(storage, JobState.QUEUED) == b"[2]"


async def test_a_successor_that_can_not_be_read_is_none(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    job = await block(client, worker)
    server.hdel(NEXT, "task")
    await client.enqueue(a_job(payload=b"[3]", update=ALL))
    await worker.settle(job, completed())
    assert await payload_of(storage, JobState.QUEUED) == b"[3]"


async def test_a_waiter_hears_of_the_end_of_the_successor_that_it_waits_for(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    job = await block(client, worker)
    channel = storage.open_channel()
    try:
        assert await channel.receive() is None
        await storage.watch(QUEUE, ["x"], channel=channel.name)
        await worker.settle(job, completed(b"1"))
        await worker.settle(await worker.claim_one(), completed(b"2"))
        assert await channel.receive() == End(QUEUE, "x", JobState.COMPLETED, result=b"2")
    finally:
        await channel.aclose()

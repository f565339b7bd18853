"""Which keys there are, what lies in them, and that each ends (DESIGN §5.1)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import redis

from headrace.errors import StorageRefused
from headrace.job import JobState
from headrace.outcome import Outcome
from headrace.storage.base import Storage
from headrace.storage.values import CallId
from headrace.testing.contract import Subject
from headrace.testing.contract.fixtures import Dump
from headrace.testing.contract.steps import (
    DAY_MS,
    EACH_STATE,
    ENDED,
    HOUR_MS,
    MINUTE_MS,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    cancelled,
    completed,
    failed,
    retried,
    state_of,
)
from tests.storage.redis.conftest import ROOT
from tests.support.leaks import problems

BIG = b"." * 65


def ttl(server: redis.Redis, key: str) -> int:
    """Return the ms that a key of the queue has left, -1 without a TTL, -2 without the key."""
    return server.pttl(f"{ROOT}:{key}")


async def test_every_key_of_a_queue_has_its_hash_tag(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
) -> None:
    for state in EACH_STATE:
        await bring(state, client, worker, state.value, payload=BIG)
    keys = {key for key in await dump() if not key.startswith(f"{ROOT}:")}
    assert keys == {"hr:{acme}:queues"}


async def test_only_a_payload_over_64_bytes_has_a_key_of_its_own(
    client: ContractClient, server: redis.Redis
) -> None:
    await client.enqueue(a_job("small", BIG[:64]), a_job("big", BIG))
    assert server.hget(f"{ROOT}:job:small", "payload") == BIG[:64]
    assert server.exists(f"{ROOT}:payload:small") == 0
    assert server.hget(f"{ROOT}:job:big", "payload") is None
    assert server.get(f"{ROOT}:payload:big") == BIG
    # A compact record is half as large.
    assert server.object("encoding", f"{ROOT}:job:big") == b"listpack"


@pytest.mark.parametrize("state", EACH_STATE)
async def test_what_belongs_to_a_job_lasts_as_long_as_its_record(
    client: ContractClient, worker: ContractIncarnation, server: redis.Redis, state: JobState
) -> None:
    if state is JobState.QUEUED:
        await bring(state, client, worker, payload=BIG)
    else:
        await client.enqueue(a_job("x", BIG))
        await worker.settle(await worker.claim_one(), retried(0))
        outcome: Outcome | None = {
            JobState.COMPLETED: completed(BIG),
            JobState.FAILED: failed(),
            JobState.CANCELLED: cancelled(),
        }.get(state)
        job = await worker.claim_one()
        if outcome is not None:
            await worker.settle(job, outcome)
    record, payload = ttl(server, "job:x"), ttl(server, "payload:x")
    assert (record > 0) == (payload > 0) == (state in ENDED)
    assert abs(record - payload) < 1000
    if state is not JobState.QUEUED:
        assert abs(record - ttl(server, "errors:x")) < 1000


async def test_each_kind_of_record_is_kept_as_long_as_it_was_asked(
    client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    await client.enqueue(*(a_job(name) for name in "abc"))
    a, b, c = await worker.claim()
    await worker.settle(a, completed(BIG, ttl_ms=HOUR_MS, keep_ms=2 * HOUR_MS))
    await worker.settle(b, cancelled(keep_ms=3 * HOUR_MS))
    await worker.settle(c, failed())
    for key, expected in [
        ("job:a", 2 * HOUR_MS),
        ("result:a", HOUR_MS),
        ("job:b", 3 * HOUR_MS),
        ("job:c", 30 * DAY_MS),
        ("errors:c", 30 * DAY_MS),
        ("calls:c1:1", HOUR_MS // 6),
    ]:
        assert expected - 60_000 < ttl(server, key) <= expected, key


async def test_the_dead_letters_ttl_is_the_queues(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    await storage.configure(QUEUE, dead_letter_ttl_ms=DAY_MS)
    await bring(JobState.FAILED, client, worker, payload=BIG)
    for key in ("job:x", "payload:x", "errors:x"):
        assert DAY_MS - 60_000 < ttl(server, key) <= DAY_MS


async def test_a_dead_letter_of_which_nothing_is_kept_leaves_no_key(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    await storage.configure(QUEUE, dead_letter_ttl_ms=0)
    await bring(JobState.FAILED, client, worker, payload=BIG)
    assert list(server.scan_iter(f"{ROOT}:*:x")) == []
    assert server.zcard(f"{ROOT}:dead") == 0


async def test_a_redriven_job_lasts_again(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    await bring(JobState.FAILED, client, worker, payload=BIG)
    await storage.redrive(QUEUE, ["x"])
    assert (ttl(server, "job:x"), ttl(server, "payload:x"), ttl(server, "errors:x")) == (-1, -1, -2)


async def test_a_thousand_jobs_of_which_nothing_is_kept_leave_no_key(
    client: ContractClient, worker: ContractIncarnation, dump: Dump
) -> None:
    # BC-57.
    await client.enqueue(a_job("warm"))
    await worker.settle(await worker.claim_one(), completed(keep_ms=0))
    before = set(await dump(with_calls=False))
    for start in range(0, 1000, 500):
        await client.enqueue(*(a_job(f"{n}", BIG) for n in range(start, start + 500)))
        for job in await worker.claim(2):
            await worker.settle(job, completed(BIG, keep_ms=0))
        while jobs := await worker.claim(100):
            for job in jobs[:1]:
                await worker.settle(job, cancelled(keep_ms=0))
            for job in jobs[1:]:
                await worker.settle(job, completed(BIG, keep_ms=0))
    assert set(await dump(with_calls=False)) == before


async def test_the_memory_of_calls_is_bounded_per_client(
    client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    for n in range(20):
        await client.enqueue(a_job(f"{n}"))
        await worker.settle(await worker.claim_one(), completed())
    memory = {f"{ROOT}:calls:c1:{slot}".encode() for slot in (0, 1)}
    assert set(server.scan_iter(f"{ROOT}:calls:*")) == memory
    assert server.hlen(f"{ROOT}:worker:w1") <= 8


async def test_output_ends_an_hour_after_its_last_piece_or_with_the_record(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    await client.enqueue(*(a_job(name) for name in "abc"))
    a, b, c = await worker.claim()
    for job in (a, b, c):
        await worker.report(job, chunks=[b"1", b"2"])
        assert HOUR_MS - 60_000 < ttl(server, f"output:{job.id}") <= HOUR_MS
    await worker.settle(a, completed(keep_ms=MINUTE_MS))
    await worker.settle(b, completed(keep_ms=0))
    await worker.settle(c, failed())
    assert 0 < ttl(server, "output:a") <= MINUTE_MS
    assert abs(ttl(server, "output:a") - ttl(server, "job:a")) < 1000
    assert ttl(server, "output:b") == -2
    # A dead letter is kept for a month, and its output is not.
    assert HOUR_MS - 60_000 < ttl(server, "output:c") <= HOUR_MS
    await storage.redrive(QUEUE, ["c"])
    assert (ttl(server, "job:c"), ttl(server, "output:c") > 0) == (-1, True)


async def test_output_that_a_lost_record_left_makes_room_for_that_of_a_new_job(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    server.xadd(f"{ROOT}:output:x", {"c": "old"}, id="7-7")
    await client.enqueue(a_job())
    job = await worker.claim_one()
    assert await worker.report(job, chunks=[b"0", b"1"])
    assert (await storage.output(QUEUE, "x")).chunks == [b"0", b"1"]


async def test_a_lane_without_ready_jobs_leaves_no_count(
    client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    for n in range(20):
        await client.enqueue(a_job(f"{n}", lane=f"lane{n}"))
    assert server.hlen(f"{ROOT}:counts") >= 20
    await worker.claim(slots={f"lane{n}": 1 for n in range(20)})
    assert set(server.hkeys(f"{ROOT}:counts")) == {b"queued", b"elsewhere", b"active", b"events"}


async def test_the_waiters_of_a_job_are_at_most_64(
    storage: Storage, client: ContractClient, server: redis.Redis
) -> None:
    await client.enqueue(a_job())
    for n in range(100):
        await storage.watch(QUEUE, ["x"], channel=f"hr:{{acme}}:channel:{n:016x}")
        await storage.watch(QUEUE, ["x"], channel=f"hr:{{acme}}:channel:{n:016x}")
    stored = server.hget(f"{ROOT}:job:x", "channels")
    assert isinstance(stored, bytes)
    channels = stored.split()
    assert 60 <= len(channels) <= 64
    assert len(set(channels)) == len(channels)


async def test_a_queue_of_a_newer_layout_is_refused_and_left_alone(
    storage: Storage, worker: ContractIncarnation, dump: Dump, server: redis.Redis
) -> None:
    server.hset(f"{ROOT}:config", "layout", 2)
    before = await dump()
    with pytest.raises(StorageRefused, match="layout 2"):
        await ContractIncarnation(storage, "late").register()
    assert await dump() == before


async def test_tenants_and_queues_with_like_names_stay_apart(
    storage: Storage, client: ContractClient
) -> None:
    # BC-66, G16.
    await client.enqueue(a_job())
    for n, queue in enumerate((f"{QUEUE}2", f"{QUEUE}-x", f"{QUEUE}.x", QUEUE.upper()), start=1):
        assert await storage.enqueue(queue, [a_job()], call=CallId("c1", n)) == ["queued"]
        assert await storage.cancel(queue, ["x"]) == ["cancelled"]
    assert await state_of(storage) is JobState.QUEUED


Damage = Callable[[redis.Redis], object]
DAMAGES: dict[str, tuple[Damage, str]] = {
    "a lasting result": (lambda r: r.set(f"{ROOT}:result:c", "1"), "result:c lacks a TTL"),
    "an orphaned payload": (lambda r: r.set(f"{ROOT}:payload:z", "1"), "payload:z lacks a TTL"),
    "a record that lasts": (lambda r: r.persist(f"{ROOT}:job:c"), "job:c lacks a TTL"),
    "a record that ends": (lambda r: r.expire(f"{ROOT}:job:q", 99), "job:q has a TTL"),
    "a foreign key": (lambda r: r.set("x", "1"), "x is not a key of ours"),
    "an unknown key": (lambda r: r.set(f"{ROOT}:new", "1"), "new: is not a key of ours"),
    "a lost count": (lambda r: r.hincrby(f"{ROOT}:counts", "active", 1), "counts 2 active"),
    "a lost entry": (lambda r: r.delete(f"{ROOT}:ready:default:5"), "ready entries {}"),
    "a doubled entry": (
        lambda r: r.rpush(f"{ROOT}:ready:default:4", r.lindex(f"{ROOT}:ready:default:5", -1) or ""),
        "ready entries {'q': 2}",
    ),
    "a lost claim": (lambda r: r.srem(f"{ROOT}:processing:w1", "a"), "processing {}"),
    "a lost delay": (lambda r: r.zpopmin(f"{ROOT}:delayed"), "delayed set()"),
    "a lost place": (lambda r: r.zrem(f"{ROOT}:finished", "c"), "'c' is not indexed"),
    "a dead worker's key": (lambda r: r.sadd(f"{ROOT}:cancels:w9", "a"), "cancels:w9 is of an"),
    "two tokens": (lambda r: r.rpush(f"{ROOT}:wake:gpu", "1", "1"), "more than one wake-up token"),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_the_check_finds(
    client: ContractClient,
    worker: ContractIncarnation,
    subject: Subject,
    server: redis.Redis,
    damage: str,
) -> None:
    await bring(JobState.ACTIVE, client, worker, "a")
    await bring(JobState.COMPLETED, client, worker, "c")
    await bring(JobState.SCHEDULED, client, worker, "s")
    await bring(JobState.QUEUED, client, worker, "q")
    assert problems(server) == []
    harm, expected = DAMAGES[damage]
    harm(server)
    assert any(expected in problem for problem in problems(server)), problems(server)
    server.flushall()

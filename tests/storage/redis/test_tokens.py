"""Wake-up tokens are hints: lost, stolen and doubled ones cost time at most (DESIGN §5.3)."""

from __future__ import annotations

import asyncio

import pytest
import redis

from headrace.errors import StaleCall
from headrace.storage.base import Storage
from headrace.testing.contract.fixtures import Dump
from headrace.testing.contract.steps import QUEUE, ContractClient, ContractIncarnation, a_job, ids
from tests.storage.redis.conftest import ROOT

WAKE = f"{ROOT}:wake:default"


async def test_a_claim_takes_jobs_without_a_token(
    client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    await client.enqueue(a_job())
    assert server.delete(WAKE) == 1
    assert ids(await worker.claim()) == ["x"]


async def test_a_lost_token_is_replaced_by_the_next_that_needs_one(
    client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    await client.enqueue(a_job("a"))
    server.delete(WAKE)
    await client.enqueue(a_job("b"))
    assert server.llen(WAKE) == 1
    assert ids(await worker.claim()) == ["a", "b"]


async def test_a_stolen_token_leaves_the_jobs_claimable(
    client: ContractClient,
    worker: ContractIncarnation,
    other: ContractIncarnation,
    server: redis.Redis,
) -> None:
    await client.enqueue(a_job())
    server.lmove(WAKE, f"{ROOT}:woken")
    assert ids(await worker.claim()) == ["x"]
    assert await other.claim() == []
    assert server.exists(f"{ROOT}:woken") == 0


async def test_doubled_tokens_bring_nobody_a_job_twice_and_end(
    storage: Storage,
    client: ContractClient,
    worker: ContractIncarnation,
    other: ContractIncarnation,
    server: redis.Redis,
) -> None:
    await client.enqueue(*(a_job(f"{n}") for n in range(4)))
    server.rpush(WAKE, "1", "1", "1")
    claimed = []
    waiters = [(w, storage.open_waiter(QUEUE, w.name, "default")) for w in (worker, other)]
    try:
        rounds = 0
        while server.llen(WAKE):
            for incarnation, waiter in waiters:
                await waiter.wait(0.01)
                claimed += ids(await incarnation.claim(1))
            rounds += 1
            assert rounds < 10
    finally:
        for _, waiter in waiters:
            await waiter.aclose()
    assert sorted(claimed) == ["0", "1", "2", "3"]


async def test_the_token_that_an_incarnation_took_goes_with_the_next_claim(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    await client.enqueue(a_job())
    waiter = storage.open_waiter(QUEUE, worker.name, "default")
    try:
        assert await waiter.wait(1)
        assert server.llen(f"{ROOT}:woken") == 1
        await worker.claim()
        assert server.exists(f"{ROOT}:woken") == 0
    finally:
        await waiter.aclose()


async def test_a_stale_or_repeated_claim_leaves_the_token_alone(
    client: ContractClient, worker: ContractIncarnation, server: redis.Redis, dump: Dump
) -> None:
    await worker.ask(number=2)
    await client.enqueue(a_job())
    server.lmove(WAKE, f"{ROOT}:woken")
    before = await dump()
    assert (await worker.ask(number=2)).jobs == []
    with pytest.raises(StaleCall):
        await worker.ask(number=1)
    assert await dump() == before


async def test_a_token_in_a_paused_queue_makes_no_hot_loop(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    await client.enqueue(a_job())
    await storage.pause(QUEUE)
    assert server.llen(WAKE) == 1
    waiter = storage.open_waiter(QUEUE, worker.name, "default")
    try:
        assert await waiter.wait(1)
        assert (await worker.ask()).is_paused
        assert not await waiter.wait(0.01)
    finally:
        await waiter.aclose()


async def test_idle_claims_leave_no_token(worker: ContractIncarnation, server: redis.Redis) -> None:
    for slots in ({}, {"default": 5}):
        await worker.claim(slots=slots)
    assert server.exists(WAKE) == 0


async def test_a_call_looks_at_a_bounded_number_of_left_over_entries(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    names = [f"{n}" for n in range(2000)]
    for start in range(0, len(names), 500):
        await client.enqueue(*(a_job(name, keep_ms=0) for name in names[start : start + 500]))
    await client.enqueue(a_job("last"))
    for start in range(0, len(names), 500):
        await storage.cancel(QUEUE, names[start : start + 500])
    reply = await worker.ask(1)
    assert (reply.jobs, reply.has_more) == ([], True)


async def test_a_token_that_a_cut_off_call_takes_late_leaves_nothing_of_its_incarnation(
    storage: Storage,
    client: ContractClient,
    worker: ContractIncarnation,
    other: ContractIncarnation,
) -> None:
    waiter = storage.open_waiter(QUEUE, other.name, "default")
    try:
        async with asyncio.TaskGroup() as group:
            blocked = group.create_task(waiter.wait(2))
            await asyncio.sleep(0)
            await storage.retire(QUEUE, other.name)
            await client.enqueue(a_job())
            assert await blocked
    finally:
        await waiter.aclose()
    assert ids(await worker.claim()) == ["x"]

"""Gates that somebody has changed behind our back, and queues whose first limit comes late."""

from __future__ import annotations

import pytest
import redis

from headrace.limit import Terms
from headrace.storage import EnqueueOutcome, JobState, Settlement, Storage, Strike
from headrace.storage.limits import BATCH_LIMIT, RECOUNT_LOOKS
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_gated_job,
    a_job,
    completed,
    gate_counts,
    ids,
    state_of,
)
from tests.storage.redis.conftest import ROOT
from tests.support import leaks

GATE, LINE = f"{ROOT}:gate:stripe\tk", f"{ROOT}:line:stripe\tk"
SPOILED = {
    "counts": ("SET", GATE, "7 3 2 0 0"),
    "gate": ("DEL", GATE),
    "line": ("DEL", LINE),
    "lines": ("DEL", f"{ROOT}:lines"),
    "parked": ("HDEL", f"{ROOT}:job:b", "parked"),
    "gates": ("HDEL", f"{ROOT}:job:c", "gates"),
    "terms": ("HSET", f"{ROOT}:limits", "stripe", "2 0 0 0\t"),
}


STRUCK = {
    "line": ("DEL", f"{ROOT}:line:task:send"),
    "gate": ("DEL", f"{ROOT}:gate:task:send"),
    "lines": ("DEL", f"{ROOT}:lines"),
    "parked": ("HDEL", f"{ROOT}:job:b", "parked"),
    "struck": ("DEL", f"{ROOT}:struck"),
    "flags": ("HDEL", f"{ROOT}:config", "is_struck", "has_conditions"),
    "strikes": ("DEL", f"{ROOT}:strikes"),
}


async def repair(storage: Storage, *, is_full: bool = True) -> int:
    """Repair to the end, and return how much was put right."""
    cursor, mended = "", 0
    while True:
        done = await storage.repair(QUEUE, cursor=cursor, is_full=is_full and not cursor)
        mended += done.mended
        cursor = done.cursor
        if not cursor:
            return mended


@pytest.mark.parametrize("spoiled", SPOILED)
async def test_a_repair_brings_gates_back_to_the_jobs_that_there_are(
    storage: Storage,
    client: ContractClient,
    worker: ContractIncarnation,
    server: redis.Redis,
    spoiled: str,
) -> None:
    await client.enqueue(*(a_gated_job(name, "k", Terms(1)) for name in "abc"))
    assert ids(await worker.claim()) == ["a"]
    server.execute_command(*SPOILED[spoiled])
    await repair(storage)
    assert leaks.problems(server) == []
    assert await repair(storage) == 0
    assert (await gate_counts(storage, "k"))[1] == 1
    assert await state_of(storage, "a") is JobState.ACTIVE


@pytest.mark.parametrize("spoiled", STRUCK)
async def test_a_repair_brings_strikes_and_their_lines_back(
    storage: Storage,
    client: ContractClient,
    worker: ContractIncarnation,
    server: redis.Redis,
    spoiled: str,
) -> None:
    await storage.strike(QUEUE, Strike(id="task:send", task="send"))
    await client.enqueue(*(a_job(name) for name in "abc"))
    assert await worker.claim() == []
    server.execute_command(*STRUCK[spoiled])
    await repair(storage)
    while await worker.claim():
        assert spoiled == "strikes"
    assert leaks.problems(server) == []
    await storage.lift(QUEUE, "task:send")
    left = ids(await worker.claim())
    assert sorted(left) == ([] if spoiled == "strikes" else ["a", "b", "c"])


async def test_the_place_of_a_lost_record_comes_free(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    await client.enqueue(*(a_gated_job(name, "k", Terms(1)) for name in "abc"))
    await worker.claim_one()
    server.delete(f"{ROOT}:job:a")
    await repair(storage)
    assert ids(await worker.claim()) == ["b"]
    assert await gate_counts(storage, "k") == (0, 1, 1)


async def test_jobs_from_before_the_first_limit_keep_their_places(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await client.enqueue(a_job("a"), a_job("b"), a_job("urgent", priority=9))
    jobs = await worker.claim(2)
    await client.enqueue(a_job("c"), a_gated_job("d", "k", Terms(1)), a_job("e"))
    await client.enqueue(a_job("f"), a_job("better", priority=8))
    for job in reversed(jobs):
        await storage.put_back(QUEUE, worker.name, [(job.id, job.claim)])
    started = []
    for _ in range(8):
        job = await worker.claim_one()
        started.append(job.id)
        assert await worker.settle(job, completed())
    assert started == ["urgent", "better", "a", "b", "c", "d", "e", "f"]


async def test_a_listing_goes_on_from_jobs_without_numbers_to_those_that_have_them(
    storage: Storage, client: ContractClient
) -> None:
    await client.enqueue(a_job("a"), a_job("b"))
    await client.enqueue(a_gated_job("c", "k", Terms(1)), a_job("d"), a_job("e"))
    cursor, found = "", []
    while True:
        page = await storage.list_jobs(QUEUE, JobState.QUEUED, limit=2, cursor=cursor)
        found += [row.id for row in page.rows]
        cursor = page.cursor
        if not cursor:
            break
    assert found == ["a", "b", "c", "d", "e"]
    assert (await storage.repair(QUEUE)).mended == 0


async def test_a_queue_without_limits_keeps_nothing_of_them(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    await client.enqueue(a_job("a"), a_job("b"))
    assert await worker.settle(await worker.claim_one(), completed())
    kinds = {key.removeprefix(f"{ROOT}:").split(":")[0] for key in leaks.dump(server)}
    assert "counts" in kinds
    assert not kinds & {"gate", "gates", "line", "lines", "limits", "ordered"}


MANY, KEYS = 700, 7
"""More jobs with places than a call looks at, and their keys."""


async def fill_many(client: ContractClient, worker: ContractIncarnation) -> None:
    """Have every gate 50 active jobs, 50 ready ones, and 20 in line."""
    terms = Terms(MANY // KEYS)
    for first in range(0, MANY, 350):
        await client.enqueue(
            *(a_gated_job(f"{n}", f"k{n % KEYS}", terms) for n in range(first, first + 350))
        )
        await worker.claim(175)
    await client.enqueue(*(a_gated_job(f"b{n}", f"k{n % KEYS}", terms) for n in range(20 * KEYS)))


def spoil_counts(server: redis.Redis) -> None:
    """Have each gate say that it has more or fewer jobs than there are."""
    for key in range(KEYS):
        value = f"{key * 10} {key * 12} {key} 0 0"
        server.set(f"{ROOT}:gate:stripe\tk{key}", value)


async def test_the_places_of_many_jobs_are_counted_over_several_calls(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    await fill_many(client, worker)
    assert await repair(storage) == 0
    spoil_counts(server)
    assert await repair(storage) == KEYS
    assert leaks.problems(server) == []
    assert await gate_counts(storage, "k3") == (50, 50, 20)
    assert await repair(storage) == 0


async def test_a_sweep_counts_the_places_of_many_jobs_too(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    await fill_many(client, worker)
    spoil_counts(server)
    cursor, mended, calls = "", 0, 0
    while cursor or not calls:
        done = await storage.repair(QUEUE, cursor=cursor)
        cursor, mended, calls = done.cursor, mended + done.mended, calls + 1
    assert calls > MANY // RECOUNT_LOOKS
    assert mended == KEYS
    assert leaks.problems(server) == []


@pytest.mark.parametrize("calls", range(1, 5))
async def test_what_a_repair_that_was_given_up_has_counted_is_not_counted_again(
    storage: Storage,
    client: ContractClient,
    worker: ContractIncarnation,
    server: redis.Redis,
    calls: int,
) -> None:
    # So many are blocked that the call which looks at them looks at no gate, while few have places.
    await client.enqueue(*(a_gated_job(f"{n}", "k", Terms(2)) for n in range(RECOUNT_LOOKS)))
    await worker.claim(2)
    cursor = ""
    for _ in range(calls):
        cursor = (await storage.repair(QUEUE, cursor=cursor)).cursor
    server.delete(f"{ROOT}:walk")  # as its TTL does: whoever walked has died
    assert await repair(storage, is_full=False) == 0
    assert await gate_counts(storage, "k") == (0, 2, RECOUNT_LOOKS - 2)


async def test_no_call_of_a_repair_looks_at_all_that_is_blocked_where_many_are_active(
    storage: Storage, client: ContractClient, server: redis.Redis
) -> None:
    await client.enqueue(*(a_job(f"{n}") for n in range(BATCH_LIMIT)))
    for name in ("one", "two"):
        worker = await ContractIncarnation(storage, name).register()
        assert len(await worker.claim(BATCH_LIMIT // 2)) == BATCH_LIMIT // 2
    for first in range(0, 4 * BATCH_LIMIT, BATCH_LIMIT):
        ids_in_line = range(first, first + BATCH_LIMIT)
        await client.enqueue(*(a_gated_job(f"b{n}", "k", Terms(1)) for n in ids_in_line))
    cursor, most, is_first = "", 0, True
    while cursor or is_first:
        server.config_resetstat()
        cursor, is_first = (await storage.repair(QUEUE, cursor=cursor)).cursor, False
        stats = server.info("commandstats").values()
        most = max(most, sum(of_command["calls"] for of_command in stats))
    assert most < 4 * BATCH_LIMIT


async def test_a_recount_while_jobs_move_frees_what_nobody_has_and_nothing_else(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    await fill_many(client, worker)
    server.set(f"{ROOT}:gate:other\tlost", "0 1 0 0 0")
    stuck = a_gated_job("stuck", "lost", Terms(1), name="other")
    assert await client.enqueue(stuck) == [EnqueueOutcome.BLOCKED]
    cursor, calls = "", 0
    while cursor or not calls:
        done = await storage.repair(QUEUE, cursor=cursor, is_full=not calls)
        cursor, calls = done.cursor, calls + 1
        jobs = await worker.claim(3)
        await worker.settle_all(*(Settlement(job.id, job.claim, 7, completed()) for job in jobs))
    assert calls > MANY // RECOUNT_LOOKS
    assert leaks.problems(server) == []
    assert await state_of(storage, "stuck") is not JobState.BLOCKED

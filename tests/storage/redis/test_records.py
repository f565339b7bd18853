"""What lies in a job's record, and what is done with one that can't be read."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import redis

from headrace.job import Claim, JobState
from headrace.storage.base import Storage
from headrace.storage.values import Settlement
from headrace.testing.contract.events import all_events
from headrace.testing.contract.fixtures import Advance, Dump
from headrace.testing.contract.steps import (
    EACH_STATE,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    completed,
    record_of,
    state_of,
)
from tests.storage.redis.conftest import ROOT
from tests.storage.redis.test_wrong_types import VERBS
from tests.support import leaks

plain = partial(a_job, is_plain=True)
FOREIGN: dict[str, dict[Any, Any]] = {
    "without a head": {"state": "active", "task": "send", "epoch": "1", "claim": "w1/0"},
    "with a garbled head": {"head": "active\t", "claim": "1\tw1/0", "task": "send"},
    "with an empty head": {"head": "", "payload": "[]"},
}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("verb", [verb for verb in VERBS if not verb.startswith("enqueue")])
async def test_a_hash_that_is_no_record_is_no_job_to_any_verb(
    storage: Storage,
    client: ContractClient,
    worker: ContractIncarnation,
    dump: Dump,
    server: redis.Redis,
    *,
    kind: str,
    verb: str,
) -> None:
    server.hset(f"{ROOT}:job:x", mapping=FOREIGN[kind])
    before = await dump(with_calls=False)
    await VERBS[verb](storage, client, worker)
    assert await dump(with_calls=False) == before
    assert await storage.get(QUEUE, "x") is None
    server.delete(f"{ROOT}:job:x")


async def test_entries_and_places_that_lead_to_no_record_are_passed_over(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    for state in EACH_STATE:
        await bring(state, client, worker, state.value)
    for state in EACH_STATE:
        server.hset(f"{ROOT}:job:{state.value}", "head", "?")
    for state in EACH_STATE:
        assert (await storage.list_jobs(QUEUE, state)).rows == []
    assert (await storage.stats(QUEUE)).oldest_ms == 0
    assert await worker.claim() == []
    assert await storage.held(QUEUE, worker.name) == []
    assert await storage.retire(QUEUE, worker.name) == 0
    await storage.prune(QUEUE)
    assert server.zcard(f"{ROOT}:finished") == 0
    # Those that were found where a waiting or active job should be are dead letters now.
    rows = (await storage.list_jobs(QUEUE, JobState.FAILED)).rows
    assert {row.reason for row in rows} == {"undecodable"}
    server.flushall()


@pytest.mark.parametrize("state", EACH_STATE)
async def test_a_record_keeps_its_compact_form_in_every_state(
    storage: Storage, client: ContractClient, server: redis.Redis, *, state: JobState
) -> None:
    # A value over 64 bytes would turn the hash into one of twice the size.
    worker = await ContractIncarnation(storage, "01JAAAAAAAAAAAAAAAAAAAAAAA").register()
    await bring(state, client, worker, payload=b"." * 64, is_plain=state is not JobState.SCHEDULED)
    assert server.object("encoding", f"{ROOT}:job:x") == b"listpack"


async def test_jobs_of_one_call_with_little_in_common_end_each_as_its_own(
    storage: Storage,
    client: ContractClient,
    worker: ContractIncarnation,
    advance: Advance,
    server: redis.Redis,
) -> None:
    await client.enqueue(plain("a"), plain("b", b"." * 100))
    await advance(20)
    await client.enqueue(plain("c"), plain("d", priority=9), a_job("e", options=b"{}"))
    claimed = {job.id: job for job in await worker.claim(3)}
    await advance(30)
    claimed.update({job.id: job for job in await worker.claim(2)})
    assert {n: job.waited_ms for n, job in claimed.items()} == {
        "d": 0, "a": 20, "b": 20, "c": 30, "e": 30,
    }  # fmt: skip
    await storage.watch(QUEUE, ["c"], channel="hr:{acme}:channel:0")
    outcomes = {name: completed(name.encode()) for name in "ade"}
    outcomes["b"] = completed(b"b" * 100)
    outcomes["c"] = completed(b"c", keep_ms=60_000)
    settlements = [Settlement(n, claimed[n].claim, ord(n), outcomes[n]) for n in "aedcb"]
    settlements.insert(2, Settlement("d", Claim(2, claimed["d"].claim.nonce), 1, completed()))
    assert await worker.settle_all(*settlements) == [True, True, False, True, True, True]
    for name in "abcde":
        record = await record_of(storage, name)
        assert (record.state, record.run_ms) == (JobState.COMPLETED, ord(name))
        assert record.result == (b"b" * 100 if name == "b" else name.encode())
        assert record.created_ms == claimed[name].created_ms
    stats = await storage.stats(QUEUE)
    assert (stats.completed, stats.active, stats.history) == (5, 0, 5)
    ends = [event for event in await all_events(storage) if event.kind == "completed"]
    assert [(end.job_id, end.run_ms) for end in ends] == [(n, ord(n)) for n in "aedcb"]
    assert leaks.problems(server) == []


async def test_a_head_that_hides_what_the_record_has_is_noticed(
    storage: Storage, client: ContractClient, server: redis.Redis
) -> None:
    await client.enqueue(plain("x"))
    server.hset(f"{ROOT}:job:x", "failures", 1)
    with pytest.raises(ValueError, match="hides"):
        leaks.problems(server)
    server.hdel(f"{ROOT}:job:x", "failures")
    assert await state_of(storage) is JobState.QUEUED

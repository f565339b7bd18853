"""What makes room in the history and among the dead letters goes with all that belongs to it."""

from __future__ import annotations

import pytest
import redis

from headrace.job import ClaimedJob
from headrace.outcome import Outcome
from headrace.storage.base import Storage
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    cancelled,
    completed,
    failed,
    retried,
    stalled,
)
from tests.storage.redis.conftest import ROOT

SMALL, BIG = b"." * 64, b"." * 65
"""The larger one has a key of its own, as payload and as result."""

OLD, NEXT = "1", "2"
"""In this order also where both end in one millisecond."""


def keys_of(server: redis.Redis, job_id: str) -> set[str]:
    """Return which keys of a job there are."""
    kinds = ("job", "payload", "result", "errors", "output")
    return {kind for kind in kinds if server.exists(f"{ROOT}:{kind}:{job_id}")}


async def start(
    client: ContractClient, worker: ContractIncarnation, job_id: str, payload: bytes
) -> ClaimedJob:
    """Enqueue a job and claim it."""
    await client.enqueue(a_job(job_id, payload))
    return await worker.claim_one()


async def end_another(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, outcome: Outcome
) -> None:
    """Bring one more job to the same end, where only one is kept."""
    await storage.configure(QUEUE, history=1, dead_letters=1)
    await worker.settle(await start(client, worker, NEXT, SMALL), outcome)


@pytest.mark.parametrize("payload", [SMALL, BIG], ids=["small", "big"])
@pytest.mark.parametrize(
    "outcome",
    [completed(), completed(BIG), completed(ttl_ms=60_000), completed(ttl_ms=0), cancelled()],
    ids=["result", "big-result", "shorter-result", "no-result", "cancelled"],
)
@pytest.mark.parametrize("before", [None, retried(0), stalled()], ids=["once", "error", "stall"])
async def test_an_ended_job_that_makes_room_leaves_no_key(
    storage: Storage,
    client: ContractClient,
    worker: ContractIncarnation,
    server: redis.Redis,
    *,
    payload: bytes,
    outcome: Outcome,
    before: Outcome | None,
) -> None:
    job = await start(client, worker, OLD, payload)
    if before is not None:
        await worker.settle(job, before)
        job = await worker.claim_one()
    await worker.settle(job, outcome)
    assert "job" in keys_of(server, OLD)
    assert ("payload" in keys_of(server, OLD)) is (payload == BIG)
    assert ("errors" in keys_of(server, OLD)) is (before is not None)
    await end_another(storage, client, worker, outcome)
    assert keys_of(server, OLD) == set()
    assert "job" in keys_of(server, NEXT)


@pytest.mark.parametrize(
    "outcome", [failed(), failed(is_attempt=False)], ids=["error", "never-ran"]
)
async def test_a_dead_letter_that_makes_room_leaves_no_key(
    storage: Storage,
    client: ContractClient,
    worker: ContractIncarnation,
    server: redis.Redis,
    outcome: Outcome,
) -> None:
    await worker.settle(await start(client, worker, OLD, BIG), outcome)
    assert keys_of(server, OLD) == {"job", "payload", "errors"}
    await end_another(storage, client, worker, outcome)
    assert keys_of(server, OLD) == set()


@pytest.mark.parametrize("outcome", [completed(), failed()], ids=["completed", "failed"])
async def test_the_output_of_a_job_that_makes_room_goes_with_it(
    storage: Storage,
    client: ContractClient,
    worker: ContractIncarnation,
    server: redis.Redis,
    outcome: Outcome,
) -> None:
    job = await start(client, worker, OLD, SMALL)
    await worker.report(job, chunks=[b"line"])
    await worker.settle(job, outcome)
    assert "output" in keys_of(server, OLD)
    await end_another(storage, client, worker, outcome)
    assert keys_of(server, OLD) == set()

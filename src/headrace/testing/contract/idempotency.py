"""Contract of idempotency keys: the first job with a key stands for those that come after it."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio
import pytest

from headrace.storage import (
    CallId,
    EnqueueOutcome,
    FirstUse,
    JobRequest,
    JobState,
    Storage,
    Update,
)
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    ENDED,
    HOUR_MS,
    QUEUE,
    UNENDED,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    completed,
    ids,
    until,
)

QUEUED, DUPLICATE = EnqueueOutcome.QUEUED, EnqueueOutcome.DUPLICATE
KEYS = ["k", "order: 7 %20 ½", "x" * 256, "{}:job:x", "*", "é" * 128]


def keyed(job_id: str, key: str = "k", ttl_ms: int = HOUR_MS, **options: Any) -> JobRequest:
    """Return a job with a key."""
    return a_job(job_id, idempotency_key=key, idempotency_ttl_ms=ttl_ms, **options)


class IdempotencyContract(Contract):
    """Tests of ``idempotency_key``."""

    @pytest.mark.parametrize("is_new_id", [True, False], ids=["drawn", "own"])
    async def test_a_key_that_came_before_stores_nothing_and_names_the_first_job(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        dump: Dump,
        *,
        is_new_id: bool,
    ) -> None:
        assert await client.enqueue(keyed("a", is_new_id=is_new_id)) == [QUEUED]
        before = await dump(with_calls=False)
        again = keyed("b", is_new_id=is_new_id, payload=b"[2]", priority=9, delay_ms=5)
        assert await client.enqueue(again) == [FirstUse(DUPLICATE, "a")]
        assert await dump(with_calls=False) == before
        assert await storage.get(QUEUE, "b") is None
        assert ids(await worker.claim()) == ["a"]

    @pytest.mark.parametrize("key", KEYS)
    async def test_keys_and_ids_of_any_form_stay_apart(
        self, client: ContractClient, key: str
    ) -> None:
        for other in KEYS:
            assert await client.enqueue(keyed(f"{other} "[:200], other)) == [QUEUED]
        assert await client.enqueue(keyed("late", key)) == [FirstUse(DUPLICATE, f"{key} "[:200])]
        assert await client.enqueue(a_job("k"), keyed("free", "late")) == [QUEUED] * 2

    @pytest.mark.parametrize("state", [*UNENDED, *ENDED])
    async def test_it_holds_whatever_became_of_the_first_job(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, state: JobState
    ) -> None:
        await bring(state, client, worker, idempotency_key="k")
        outcome = EnqueueOutcome.COMPLETED if state is JobState.COMPLETED else DUPLICATE
        assert await client.enqueue(keyed("b")) == [FirstUse(outcome, "x")]
        await storage.purge(QUEUE, state, ["x"])
        assert await client.enqueue(keyed("b")) == [FirstUse(DUPLICATE, "x")]

    async def test_it_holds_for_its_time_from_the_first_call_on(
        self,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(keyed("a", ttl_ms=30), keyed("b", "other"))
        await worker.settle((await worker.claim(1))[0], completed(keep_ms=0))
        assert await client.enqueue(keyed("c", ttl_ms=HOUR_MS)) == [FirstUse(DUPLICATE, "a")]
        await advance(30)

        async def is_free() -> bool:
            return await client.enqueue(keyed("c")) == [QUEUED]

        await until(is_free)
        assert await client.enqueue(keyed("a")) == [FirstUse(DUPLICATE, "c")]
        assert await client.enqueue(keyed("a", "other")) == [FirstUse(DUPLICATE, "b")]

    async def test_the_key_counts_before_the_id_and_a_known_id_leaves_no_key(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job("x"), keyed("a"))
        assert await client.enqueue(keyed("x")) == [FirstUse(DUPLICATE, "a")]
        assert await client.enqueue(keyed("x", "new")) == [DUPLICATE]
        assert await client.enqueue(keyed("y", "new")) == [QUEUED]
        assert ids(await worker.claim()) == ["x", "a", "y"]

    async def test_of_one_call_the_first_counts_and_the_others_name_it(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        first = FirstUse(DUPLICATE, "a b")
        batch = [keyed("a b"), a_job("p", is_plain=True), keyed("c"), keyed("d", "e"), keyed("f")]
        for _ in range(2):  # a repeated call answers the same
            verdicts = await client.enqueue(*batch, number=1)
            assert verdicts == [QUEUED, QUEUED, first, QUEUED, first]
        assert ids(await worker.claim()) == ["a b", "p", "d"]

    async def test_queues_know_keys_of_their_own(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await client.enqueue(keyed("a"))
        assert await storage.enqueue("other", [keyed("a")], call=CallId("c1", 1)) == [QUEUED]
        neighbour = storage.for_tenant("neighbour")
        assert await neighbour.enqueue(QUEUE, [keyed("a")], call=CallId("c1", 1)) == [QUEUED]
        await neighbour.aclose()

    async def test_it_outlives_its_queue(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(keyed("a"))
        await storage.purge(QUEUE, JobState.QUEUED, ["a"])
        await storage.retire(QUEUE, worker.name)
        assert await storage.delete_queue(QUEUE, is_forced=True) == 0
        assert await client.enqueue(keyed("b")) == [FirstUse(DUPLICATE, "a")]

    @pytest.mark.parametrize("state", [JobState.SCHEDULED, JobState.ACTIVE])
    async def test_an_update_that_took_effect_is_not_done_again(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, state: JobState
    ) -> None:
        await bring(state, client, worker)
        updates = [keyed("x", payload=b"[%d]" % n, update=Update()) for n in (2, 3)]
        assert await client.enqueue(updates[0]) == [EnqueueOutcome.UPDATED]
        assert await client.enqueue(updates[1]) == [FirstUse(DUPLICATE, "x")]
        await storage.retire(QUEUE, worker.name)
        record = await storage.get(QUEUE, "x")
        assert record is not None
        assert record.payload == b"[2]"

    async def test_a_hundred_first_uses_at_once_give_one_job(self, storage: Storage) -> None:
        verdicts = []

        async def send(number: int) -> None:
            job = keyed(f"x{number}", is_new_id=True)
            call = CallId(f"c{number}", 1)
            verdicts.extend(await storage.enqueue(QUEUE, [job], call=call))

        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(partial(send, number))
        assert verdicts.count(QUEUED) == 1
        [row] = (await storage.list_jobs(QUEUE, JobState.QUEUED, limit=9)).rows
        assert verdicts.count(FirstUse(DUPLICATE, row.id)) == 99

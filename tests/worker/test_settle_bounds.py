"""How many outcomes one call records: each may free places in limits, and let other jobs in."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import cast

import pytest

from headrace.job import JobState
from headrace.outcome import Completed
from headrace.storage.base import Consumer
from headrace.storage.limits import MOVED_A_CALL
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.storage.values import CallId, Settlement
from headrace.testing.contract.steps import QUEUE, ContractClient, ContractIncarnation, a_job
from headrace.worker.settle import Settler


class Counted:
    """Passes outcomes on, and counts what each call holds."""

    def __init__(self, storage: SqliteStorage) -> None:
        self._storage = storage
        self.sizes: list[int] = []

    async def settle(
        self, queue: str, settlements: Sequence[Settlement], *, call: CallId
    ) -> list[bool] | None:
        self.sizes.append(len(settlements))
        return await self._storage.settle(queue, settlements, call=call)


async def test_many_that_end_at_once_are_recorded_in_calls_of_200() -> None:
    storage = SqliteStorage(f"memory://test-{secrets.token_hex(6)}").for_tenant("acme")
    counted = Counted(storage)
    worker = await ContractIncarnation(storage, "w1").register()
    await ContractClient(storage).enqueue(*(a_job(f"{n}") for n in range(450)))
    settler = Settler(
        cast(Consumer, counted),
        queue=QUEUE,
        incarnation=worker.name,
        emit=lambda _: None,
        on_gone=lambda: pytest.fail("the storage knows it"),
    )
    for job in await worker.claim():
        settler.add(job, Completed(job.id.encode(), 60_000, 60_000), 1)
    await settler.drain()
    assert counted.sizes == [MOVED_A_CALL, MOVED_A_CALL, 50]
    assert (await storage.stats(QUEUE)).history == 450
    [last] = await storage.outcomes(QUEUE, ["449"])
    assert (last.state, last.result) == (JobState.COMPLETED, b"449")
    await storage.aclose()

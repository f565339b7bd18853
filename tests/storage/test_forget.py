"""Contract of ``forget``."""

from __future__ import annotations

from headrace.job import JobState
from headrace.storage.base import Storage
from tests.storage.conftest import Dump
from tests.storage.steps import (
    QUEUE,
    Client,
    Incarnation,
    bring,
)


async def test_a_live_incarnation_is_not_forgotten(
    storage: Storage, worker: Incarnation, dump: Dump
) -> None:
    before = dump()
    assert not await storage.forget(QUEUE, worker.name)
    assert dump() == before


async def test_a_forgotten_incarnation_leaves_no_key(
    storage: Storage, client: Client, worker: Incarnation, dump: Dump
) -> None:
    await bring(JobState.ACTIVE, client, worker)
    await storage.cancel(QUEUE, ["x"])
    await worker.die()
    assert await storage.workers(QUEUE) == []
    assert not [key for key in dump() if worker.name in key]
    assert await storage.forget(QUEUE, worker.name)

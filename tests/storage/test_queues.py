"""Contract of ``queues``."""

from __future__ import annotations

from headrace.storage.base import CallId, Storage
from tests.storage.steps import (
    QUEUE,
    Client,
    Incarnation,
    a_job,
)


async def test_queues_are_known_from_their_first_job_or_worker_on(
    storage: Storage, client: Client
) -> None:
    assert await storage.queues() == []
    await client.enqueue(a_job())
    await storage.enqueue("zebra", [a_job()], call=CallId("c1", 1))
    await storage.register("alpha", Incarnation(storage, "w1").info)
    assert await storage.queues() == ["alpha", QUEUE, "zebra"]
    await storage.retire("alpha", "w1")

"""Idempotency keys in a database: those whose time is over are deleted."""

from __future__ import annotations

from headrace.storage.limits import PRUNED_A_CALL
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.testing.contract.steps import QUEUE, ContractClient, a_job


async def test_keys_whose_time_is_over_are_pruned(file_storage: SqliteStorage) -> None:
    now = 1_000_000
    file_storage.clock = lambda: now
    client = ContractClient(file_storage)
    for n in range(0, PRUNED_A_CALL + 50, 50):
        await client.enqueue(
            *(
                a_job(f"{m}", idempotency_key=f"{m}", idempotency_ttl_ms=1_000)
                for m in range(n, n + 50)
            )
        )
    await client.enqueue(a_job("kept", idempotency_key="kept"))
    now += 1_000
    calls = 1
    cursor = await file_storage.prune(QUEUE)
    while cursor:
        calls, cursor = calls + 1, await file_storage.prune(QUEUE, cursor=cursor)
    assert calls > 1, "a call does a bounded piece of work"
    names = await file_storage.engine().writer.run(
        lambda step: step.db.execute("SELECT name FROM idempotency").fetchall(), lambda: now
    )
    assert names == [("kept",)]

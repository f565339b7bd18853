"""A replica answers whoever only reads."""

from __future__ import annotations

import pytest
import redis

from headrace.errors import StorageUnavailable
from headrace.job import JobState
from headrace.storage.base import Storage
from headrace.storage.redis.storage import RedisStorage
from headrace.testing.contract.fixtures import Advance
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    completed,
)
from tests.support.clock import library_with_test_clock
from tests.support.redis_server import RedisServer
from tests.support.until import until


async def test_what_only_reads_is_answered_by_a_replica(
    storage: Storage,
    client: ContractClient,
    worker: ContractIncarnation,
    advance: Advance,
    server: redis.Redis,
) -> None:
    await client.enqueue(a_job())
    await worker.settle(await worker.claim_one(), completed())
    await advance(1)
    server.config_set("repl-diskless-sync-delay", 0)
    source = server.connection_pool.connection_kwargs
    with RedisServer("--replicaof", f"{source['host']} {source['port']}") as copy:
        with copy.client() as looking:

            async def is_there() -> bool:
                return bool(looking.dbsize() == server.dbsize())

            await until(is_there)
        replica = RedisStorage(copy.url, source=library_with_test_clock()).for_tenant("acme")
        try:
            [end] = await replica.outcomes(QUEUE, ["x"])
            assert end.result == b"1"
            page = await replica.export(QUEUE, JobState.COMPLETED)
            assert [record.id for record in page.records] == ["x"]
            with pytest.raises(StorageUnavailable, match="READONLY"):
                await replica.pause(QUEUE)
        finally:
            await replica.aclose()

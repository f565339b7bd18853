"""The storages of all tenants of one server share a connection, and its last user closes it."""

from __future__ import annotations

import gc

import redis

from headrace.storage.redis.storage import RedisStorage
from tests.support.redis_server import RedisServer
from tests.support.until import until

QUEUE = "mail"


def connections(server: redis.Redis) -> int:
    return sum(entry["name"] == "headrace" for entry in server.client_list())


async def test_the_last_user_closes_the_connection(
    redis_server: RedisServer, server: redis.Redis
) -> None:
    opened = RedisStorage(redis_server.url)
    ours, theirs = opened.for_tenant("ours"), opened.for_tenant("theirs")
    for storage in (ours, theirs):
        await storage.stats(QUEUE)
        assert connections(server) == 1
    await ours.aclose()
    await ours.aclose()
    await opened.aclose()
    assert connections(server) == 1
    await theirs.aclose()
    await until(lambda: connections(server) == 0, within=10)
    await ours.stats(QUEUE)
    assert connections(server) == 1
    await ours.aclose()


async def test_one_that_was_left_behind_keeps_nothing_open(
    redis_server: RedisServer, server: redis.Redis
) -> None:
    opened = RedisStorage(redis_server.url)
    await opened.stats(QUEUE)
    await opened.for_tenant("passing").stats(QUEUE)
    gc.collect()
    await opened.aclose()
    await until(lambda: connections(server) == 0, within=10)


async def test_a_queue_is_put_on_the_list_of_each_of_its_tenants(redis_server: RedisServer) -> None:
    opened = RedisStorage(redis_server.url)
    for tenant in ("ours", "theirs"):
        storage = opened.for_tenant(tenant)
        await storage.repair(QUEUE)
        assert await storage.queues() == [QUEUE]
        await storage.aclose()

"""Redis that is not there at first, or dies in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import pytest_asyncio
from pyspark.sql import DataFrame, SparkSession

from headrace.storage.redis.library import library
from headrace.testing.contract.steps import QUEUE
from tests.spark.support.rows import numbered, once, queued, save, take_rows
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer, free_port
from tests.support.until import until

ROWS = 6_000
HELD_S = 60.0


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """Return a server of the test's own that writes each command to its append-only file."""
    with RedisServer("--appendfsync", "always", appendonly=True) as server:
        yield server


@pytest_asyncio.fixture
async def proxy(server: RedisServer) -> AsyncIterator[Proxy]:
    """Return a proxy before that server; to load the functions there would count as a call."""
    await queued(server.url)
    async with Proxy(server.port) as proxy:
        yield proxy


def read(spark: SparkSession, url: str) -> DataFrame:
    return spark.read.format("headrace").options(url=url, queue=QUEUE).load()


def nowhere() -> str:
    return f"redis://127.0.0.1:{free_port()}"


def test_a_write_to_nowhere_fails_on_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    def noted(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        (tmp_path / "a task of Spark ran").touch()
        yield from batches

    rows = numbered(spark, ROWS, has_ids=True)
    url = nowhere()
    with pytest.raises(Exception, match=rf"StorageUnavailable.*{url.rpartition(':')[2]}"):
        save(rows.mapInArrow(noted, rows.schema), url)
    assert list(tmp_path.iterdir()) == []


def test_a_read_from_nowhere_fails_with_the_cause(spark: SparkSession) -> None:
    url = nowhere()
    with pytest.raises(Exception, match=rf"StorageUnavailable.*{url.rpartition(':')[2]}"):
        read(spark, url).count()


async def through_a_death(
    server: RedisServer, proxy: Proxy, verb: str, act: Callable[[], Any]
) -> Any:
    """Do something while Redis dies in the middle, is missed, and comes back."""
    held = proxy.hold("client", after=library().function(verb).encode(), skip=1)
    acting = asyncio.create_task(asyncio.to_thread(act))
    await until(lambda: held.happened.is_set() or acting.done(), within=HELD_S)
    server.kill()
    proxy.reset_all()
    await until(lambda: proxy.refused >= 2 or acting.done(), within=HELD_S)
    server.start()
    return await acting


@pytest.mark.parametrize("commit", ["direct", "atomic"])
async def test_a_write_goes_on_when_redis_is_back(
    spark: SparkSession, server: RedisServer, proxy: Proxy, commit: str
) -> None:
    is_direct = commit == "direct"
    rows = numbered(spark, ROWS, has_ids=is_direct)
    verb = "enqueue" if is_direct else "stage"
    await through_a_death(server, proxy, verb, lambda: save(rows, proxy.url, commit=commit))
    server.kill()
    server.start()
    assert await take_rows(server.url) == once(ROWS)


async def test_a_write_fails_when_redis_stays_away(
    spark: SparkSession, server: RedisServer, proxy: Proxy
) -> None:
    held = proxy.hold("client", after=library().function("enqueue").encode(), skip=1)
    rows = numbered(spark, ROWS, has_ids=True)
    saving = asyncio.create_task(asyncio.to_thread(save, rows, proxy.url, retryFor=0.5))
    await until(lambda: held.happened.is_set() or saving.done(), within=HELD_S)
    server.kill()
    proxy.reset_all()
    with pytest.raises(Exception, match=r"StorageUnavailable|ReplyLost"):
        await saving
    server.start()
    await asyncio.to_thread(save, rows, proxy.url)
    assert await take_rows(server.url) == once(ROWS)


async def test_a_read_goes_on_when_redis_is_back(
    spark: SparkSession, server: RedisServer, proxy: Proxy
) -> None:
    await asyncio.to_thread(save, numbered(spark, ROWS, has_ids=True), server.url)
    events = read(spark, proxy.url)
    found = await through_a_death(
        server, proxy, "event_lines", lambda: events.select("number").distinct().count()
    )
    assert found == ROWS

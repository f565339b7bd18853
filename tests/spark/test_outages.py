"""Redis that is not there at first, or dies in the middle."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import pytest_asyncio
from pyspark.sql import DataFrame, SparkSession

from headrace import JobEvent, StorageError, SyncApp
from headrace.spark.pipeline import archive
from headrace.storage.redis.library import library
from headrace.testing.contract.steps import QUEUE
from tests.spark.support.archives import counted
from tests.spark.support.rows import numbered, once, queued, save, take_rows
from tests.spark.support.worked import dead, done, work
from tests.support.ports import closed_port
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
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


def told(url: str) -> list[JobEvent]:
    """Return what the queue tells."""
    with SyncApp[None](url) as app:
        return list(app.queue("orders").events())


def nowhere() -> str:
    return f"redis://127.0.0.1:{closed_port()}"


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
    server: RedisServer, proxy: Proxy, word: str, act: Callable[[], Any], *, skip: int = 1
) -> Any:
    """Do something while Redis dies in the middle, is missed, and comes back.

    It dies at the answer to a command with a word in it, of which some are skipped.
    """
    held = proxy.hold("client", after=word.encode(), skip=skip)
    acting = asyncio.create_task(asyncio.to_thread(act))
    await until(lambda: held.happened.is_set() or acting.done(), within=HELD_S)
    assert held.happened.is_set(), f"{word} was not called"
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
    word = library().function("enqueue" if is_direct else "stage")
    await through_a_death(server, proxy, word, lambda: save(rows, proxy.url, commit=commit))
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
        server, proxy, "XRANGE", lambda: events.select("number").distinct().count()
    )
    assert found == ROWS


WAITS = nullcontext()
FAILS = pytest.raises(StorageError)
EITHER = suppress(StorageError)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "skip", "outcome"),
    [
        pytest.param("_acknowledge", 0, FAILS, id="before-the-plan"),
        pytest.param("_export", 0, FAILS, id="planning"),
        pytest.param("XRANGE", 1, WAITS, id="reading-events"),
        pytest.param("_export", 1, EITHER, id="reading-dead-letters"),
        pytest.param("_acknowledge", 1, FAILS, id="after-all-was-written"),
    ],
)
async def test_an_archive_is_whole_in_spite_of_a_death(
    spark: SparkSession,
    server: RedisServer,
    proxy: Proxy,
    tmp_path: Path,
    *,
    word: str,
    skip: int,
    outcome: AbstractContextManager[object],
) -> None:
    """Who reads events waits for the storage; what else fails is done by the next run."""
    letters = [f"dead-{number}" for number in range(20)]
    for number in range(5):
        names = (f"done-{number}-{job}" for job in range(400))
        await asyncio.to_thread(work, server.url, done(names))
    await asyncio.to_thread(work, server.url, dead(letters))
    run = partial(archive, spark, tmp_path, queues=["orders"], url=proxy.url)
    with outcome:
        await through_a_death(server, proxy, word, run, skip=skip)
    if outcome is not WAITS:
        await asyncio.to_thread(run)
    events = await asyncio.to_thread(told, server.url)
    assert counted(tmp_path, "number") == Counter(event.number for event in events)
    assert counted(tmp_path, "job_id", kind="dead") == Counter(letters)
    assert (await asyncio.to_thread(run)).events == 0

"""Events are read through Spark Connect, and a driver without a JVM has all that it needs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.testing.contract.steps import QUEUE
from tests.spark.support.drivers import Driver
from tests.spark.support.rows import numbered, once, save, take_rows

ROWS = 1_500


@pytest.fixture
def written(connect: SparkSession, url: str) -> str:
    """Return the address of a storage with the events of rows."""
    save(numbered(connect, ROWS, has_ids=True), url)
    return url


def test_events_are_read(connect: SparkSession, written: str) -> None:
    events = connect.read.format("headrace").options(url=written, queue=QUEUE).load()
    found = events.groupBy("kind").count().collect()
    assert {row.kind: row["count"] for row in found} == {"queued": ROWS}


def test_a_stream_of_events_is_read(connect: SparkSession, written: str, tmp_path: Path) -> None:
    options = {"url": written, "queue": QUEUE, "startingOffsets": "earliest"}
    query = (
        connect.readStream.format("headrace")
        .options(**options)
        .load()
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "events"))
    )
    assert query.awaitTermination(60)
    assert query.exception() is None
    numbers = connect.read.parquet(str(tmp_path / "events")).select("number")
    assert (numbers.count(), numbers.distinct().count()) == (ROWS, ROWS)


async def test_a_driver_without_a_jvm_writes_and_reads(
    connect_address: str, redis_url: str, tmp_path: Path
) -> None:
    with Driver.start(
        "remote", tmp_path, address=connect_address, url=redis_url, rows=ROWS
    ) as driver:
        [told] = await driver.tells("done")
    assert told == {"what": "done", "added": ROWS, "events": ROWS, "children": []}
    assert await take_rows(redis_url) == once(ROWS)

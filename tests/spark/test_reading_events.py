"""Events as DataFrames: read once, and followed as a stream."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.streaming import StreamingQuery

from headrace import SyncApp
from headrace.spark.events import SCHEMA
from headrace.spark.places import EventOffset, to_json
from headrace.storage.event_pages import EventPlace
from headrace.testing.contract.delete_queue import next_millisecond
from tests.spark.support.events import enqueue, entries, first_of, last_of, trim
from tests.spark.support.micro_batches import SPARK_SAYS_LIMITS

redis = pytest.mark.parametrize("url", ["redis"], indirect=True)
"""The readers by themselves are tested on both storages; a stream of Spark takes seconds."""


def read(spark: SparkSession, url: str, queue: str = "q", **options: object) -> DataFrame:
    """Return the events of queues."""
    reader = spark.read.format("headrace").option("url", url).option("queue", queue)
    return reader.options(**{name: str(value) for name, value in options.items()}).load()


def numbers(frame: DataFrame) -> list[int]:
    """Return the numbers of events, in their order."""
    return sorted(row.number for row in frame.select("number").collect())


def offsets(place: EventPlace, queue: str = "q") -> str:
    """Return the offset behind an entry."""
    return json.dumps(to_json({queue: EventOffset(place.stream_id, place.last)}))


class IntoFiles:
    """A stream of events into files, which goes on where it was stopped."""

    def __init__(self, spark: SparkSession, url: str, root: Path) -> None:
        self._spark = spark
        self._url = url
        self._root = root

    def start(
        self, queue: str = "q", *, trigger: dict[str, Any] | None = None, **options: object
    ) -> StreamingQuery:
        """Start to bring in what comes, or what is there."""
        stream = self._spark.readStream.format("headrace").option("url", self._url)
        said = {"queue": queue, "startingOffsets": "earliest", **options}
        events = stream.options(**{name: str(value) for name, value in said.items()}).load()
        to_files = events.writeStream.format("parquet").option("path", f"{self._root}/events")
        to_files = to_files.option("checkpointLocation", f"{self._root}/checkpoint")
        return to_files.trigger(**(trigger or {"availableNow": True})).start()

    def run(self, **options: Any) -> StreamingQuery:
        """Bring in what there is."""
        query = self.start(**options)
        query.awaitTermination()
        return query

    def numbers(self) -> list[int]:
        """Return the numbers of what was brought in."""
        return numbers(self._spark.read.parquet(f"{self._root}/events"))


@pytest.fixture
def files(spark: SparkSession, url: str, tmp_path: Path) -> IntoFiles:
    """Return a stream into an empty folder."""
    return IntoFiles(spark, url, tmp_path)


def test_events_are_read_with_their_columns(
    spark: SparkSession, url: str, app: SyncApp[None]
) -> None:
    enqueue(app, 30)
    frame = read(spark, url)
    assert frame.columns == SCHEMA.names
    assert frame.where("number > 20").count() == 10  # Spark filters by itself
    row = frame.orderBy("number").first()
    assert row is not None
    place = first_of(app)
    assert (row.tenant, row.queue, row.number, row.stream_id) == (
        "default",
        "q",
        1,
        place.stream_id,
    )
    assert (row.kind, row.task, row.start, row.wait_ms) == ("queued", "shop.send", 0, None)
    at = frame.select(col("at").cast("double")).first()
    assert at is not None
    assert at[0] == int(place.stream_id.partition("-")[0]) / 1000


def test_several_queues_or_all_are_read_at_once(
    spark: SparkSession, url: str, app: SyncApp[None]
) -> None:
    enqueue(app, 30)
    enqueue(app, 20, queue="r")
    enqueue(app, 10, queue="s")
    for queue, found in (("q, s", {"q": 30, "s": 10}), ("*", {"q": 30, "r": 20, "s": 10})):
        counts = read(spark, url, queue).groupBy("queue").count().collect()
        assert {row.queue: row["count"] for row in counts} == found


def test_tasks_of_spark_share_the_events(spark: SparkSession, url: str, app: SyncApp[None]) -> None:
    enqueue(app, 5_000)
    frame = read(spark, url, minPartitions=3)
    assert frame.rdd.getNumPartitions() > 1
    assert numbers(frame) == list(range(1, 5_001))
    assert read(spark, url, minPartitions=1).rdd.getNumPartitions() == 1


def test_what_lies_between_two_offsets_or_instants_is_read(
    spark: SparkSession, url: str, app: SyncApp[None]
) -> None:
    for _ in range(3):
        enqueue(app, 20)
        next_millisecond()
    first, second, third = (entry.place for entry in entries(app))
    between = read(spark, url, startingOffsets=offsets(first), endingOffsets=offsets(second))
    assert numbers(between) == list(range(21, 41))
    start, end = (int(place.stream_id.partition("-")[0]) for place in (second, third))
    since = datetime.fromtimestamp(start / 1000, UTC).isoformat()
    assert numbers(read(spark, url, startingTimestamp=since, endingTimestamp=end)) == list(
        range(21, 41)
    )


def test_a_queue_without_events_has_no_rows(spark: SparkSession, url: str) -> None:
    assert read(spark, url).collect() == []


def test_what_was_trimmed_fails_the_query_or_is_left_out(
    spark: SparkSession, url: str, app: SyncApp[None]
) -> None:
    enqueue(app, 20)
    start = first_of(app)
    first = trim(app).first
    last = last_of(app).last
    with pytest.raises(PySparkException, match=f"{first - 21} events of queue 'q' after number 20"):
        read(spark, url, startingOffsets=offsets(start)).count()
    rest = read(spark, url, startingOffsets=offsets(start), failOnDataLoss=False)
    assert numbers(rest) == list(range(first, last + 1))
    assert numbers(read(spark, url)) == list(range(first, last + 1))  # nobody asked for more


def test_a_stream_goes_on_where_it_was_stopped(app: SyncApp[None], files: IntoFiles) -> None:
    files.run()  # there is nothing yet
    for _ in range(8):
        enqueue(app, 20)
        next_millisecond()
    runs = 1 if SPARK_SAYS_LIMITS else 4  # pyspark 4.1 has one micro-batch a run
    queries = [files.run(maxEventsPerTrigger=50) for _ in range(runs)]
    rows = [progress.numInputRows for query in queries for progress in query.recentProgress]
    assert [count for count in rows if count] == [40, 40, 40, 40]
    assert files.numbers() == list(range(1, 161))
    enqueue(app, 5_000)
    enqueue(app, 200, queue="r")
    for _ in range(runs):
        files.run(queue="q,r")
    assert files.numbers() == sorted([*range(1, 5_161), *range(1, 201)])


@redis
def test_a_running_stream_brings_what_comes(app: SyncApp[None], files: IntoFiles) -> None:
    query = files.start("*", trigger={"processingTime": "0 seconds"})
    enqueue(app, 700)
    query.processAllAvailable()
    enqueue(app, 300)
    enqueue(app, 10, queue="new")
    query.processAllAvailable()
    query.stop()
    assert files.numbers() == sorted([*range(1, 1_001), *range(1, 11)])


@redis
def test_a_stream_fails_where_it_has_missed_events_or_goes_on(
    app: SyncApp[None], files: IntoFiles
) -> None:
    enqueue(app, 20)
    files.run()
    first = trim(app).first
    with pytest.raises(PySparkException, match=f"{first - 21} events of queue 'q' after number 20"):
        files.run()
    files.run(failOnDataLoss=False)
    assert files.numbers() == [*range(1, 21), *range(first, last_of(app).last + 1)]

"""A storage in the memory of one process is refused on the driver: Spark's Python is another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headrace import SyncApp
from headrace.spark import enqueue_batch, enqueue_dataframe, enqueue_partition
from headrace.testing.contract.steps import QUEUE
from tests.spark.support.rows import TASK, numbered, save

URL = "memory://jobs"
WORDS = "memory://.* (one|another) process"


def read(spark: SparkSession, what: str) -> Any:
    return spark.read.format("headrace").options(url=URL, queue=QUEUE, read=what).load().collect()


def enqueue(spark: SparkSession) -> Any:
    frame = numbered(spark, 10, has_ids=True)
    return enqueue_dataframe(frame, url=URL, queue=QUEUE, task=TASK)


def call(spark: SparkSession) -> None:
    app = SyncApp(URL)

    def enqueue_all(rows: Any) -> None:
        app.enqueue_many(app.task_ref(TASK, queue=QUEUE).job() for _ in rows)

    spark.range(10).foreachPartition(enqueue_all)


WAYS: dict[str, Callable[[SparkSession], Any]] = {
    "save direct": lambda spark: save(numbered(spark, 10, has_ids=True), URL),
    "save atomic": lambda spark: save(numbered(spark, 10), URL, commit="atomic"),
    "enqueue_dataframe": enqueue,
    "enqueue_batch": lambda _: enqueue_batch(url=URL, queue=QUEUE, task=TASK, id_from=["row"]),
    "enqueue_partition": lambda _: enqueue_partition(url=URL, queue=QUEUE, task=TASK),
    "an app of one's own": call,
    "read events": lambda spark: read(spark, "events"),
    "read jobs": lambda spark: read(spark, "jobs"),
}


@pytest.mark.parametrize("way", WAYS)
def test_memory_is_refused(spark: SparkSession, way: str) -> None:
    with pytest.raises(Exception, match=WORDS):
        WAYS[way](spark)

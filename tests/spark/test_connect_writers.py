"""Spark Connect writes jobs as a classic session does."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf
from pyspark.sql.connect.session import SparkSession

from headrace import SyncApp

pytestmark = pytest.mark.parametrize("url", ["redis"], indirect=True)

ROWS = 1_000
COLUMNS = ("cast(id as string) id", "to_json(struct(id)) payload")


def queued(app: SyncApp[None]) -> int:
    return app.queue("a").stats().queued


def test_a_frame_is_saved(connect: SparkSession, url: str, app: SyncApp[None]) -> None:
    writer = connect.range(0, ROWS, 1, 2).selectExpr(*COLUMNS).write.format("headrace")
    options = {"url": url, "task": "load", "queue": "a", "commit": "atomic", "writeId": "load-7"}
    for _ in range(2):
        writer.mode("append").options(**options).save()
    assert queued(app) == ROWS
    with pytest.raises(PySparkException, match="a queue is never overwritten"):
        writer.mode("overwrite").save()


def test_a_stream_is_written(
    connect: SparkSession, url: str, app: SyncApp[None], tmp_path: Path
) -> None:
    folder = str(tmp_path / "source")
    connect.range(0, ROWS, 1, 2).write.parquet(folder)
    rows = connect.readStream.schema("id long").parquet(folder)
    writer = rows.select(sf.to_json(sf.struct("id")).alias("payload")).writeStream
    options = {"url": url, "task": "load", "queue": "a", "commit": "atomic"}
    query = (
        writer.format("headrace")
        .options(**options, checkpointLocation=str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert queued(app) == ROWS
    report = app.write_report(query.id, queue="a")
    assert report is not None
    assert report.rows == ROWS

"""Micro-batches become jobs once, also when Spark begins one of them again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming import StreamingQuery

from headrace import SyncApp
from tests.spark.support.stages import stages_left

ROWS = 8_000
FILES = 4


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """Return a stream of four files, a micro-batch each."""
    folder = str(tmp_path / "source")
    spark.range(0, ROWS, 1, FILES).write.parquet(folder)
    return (
        spark.readStream.schema("id long")
        .option("maxFilesPerTrigger", 1)
        .parquet(folder)
        .select(
            sf.col("id").cast("string").alias("id"), sf.to_json(sf.struct("id")).alias("payload")
        )
    )


def write(frame: DataFrame, url: str, checkpoint: Path, **options: Any) -> StreamingQuery:
    """Write all that there is, and return the query that has."""
    writer = frame.writeStream.format("headrace").trigger(availableNow=True)
    said = {"url": url, "task": "load", "queue": "a", "checkpointLocation": checkpoint, **options}
    for name, value in said.items():
        writer = writer.option(name, str(value))
    query = writer.start()
    query.awaitTermination()
    return query


def forget_last(checkpoint: Path) -> None:
    """Delete the last entry of the commit log: who begins anew thinks that it failed."""
    commits = sorted((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    commits[-1].unlink()
    (commits[-1].parent / f".{commits[-1].name}.crc").unlink()


def queued(app: SyncApp[None]) -> int:
    return app.queue("a").stats().queued


@pytest.mark.parametrize("commit", ["direct", "atomic"])
def test_a_micro_batch_that_is_replayed_brings_its_rows_once(
    source: DataFrame, url: str, app: SyncApp[None], tmp_path: Path, commit: str
) -> None:
    checkpoint = tmp_path / "checkpoint"
    frame = source if commit == "direct" else source.drop("id")
    query = write(frame, url, checkpoint, commit=commit)
    assert queued(app) == ROWS
    forget_last(checkpoint)
    again = write(frame, url, checkpoint, commit=commit)
    assert [progress.batchId for progress in again.recentProgress] == [FILES - 1]
    assert queued(app) == ROWS
    assert stages_left(url) == 0
    if commit == "atomic":
        report = app.write_report(query.id, queue="a")
        assert report is not None
        assert (report.batch, report.rows) == (FILES - 1, ROWS)


@pytest.mark.parametrize("url", ["redis"], indirect=True)
def test_a_write_that_is_ahead_of_the_checkpoint_fails(
    source: DataFrame, url: str, app: SyncApp[None], tmp_path: Path
) -> None:
    said = {"commit": "atomic", "writeId": "orders"}
    write(source, url, tmp_path / "checkpoint", **said)
    with pytest.raises(StreamingQueryException, match=r"micro-batch 0 .* 'orders' .* up to 3, so"):
        write(source, url, tmp_path / "another", **said)
    assert queued(app) == ROWS
    assert stages_left(url) == 0


@pytest.mark.parametrize("url", ["redis"], indirect=True)
def test_a_stream_without_ids_has_to_be_atomic(source: DataFrame, url: str, tmp_path: Path) -> None:
    with pytest.raises(StreamingQueryException, match=r"no column 'id', .* commit=atomic"):
        write(source.drop("id"), url, tmp_path / "checkpoint")

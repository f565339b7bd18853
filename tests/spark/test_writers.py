"""DataFrames that are saved become jobs: each once, however often Spark tries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from headrace import SyncApp
from headrace.spark.options import WriteOptions
from headrace.spark.writing import WRITTEN, finish, in_arrow, read_written, terms_of
from tests.spark.support.stages import stages_left

ROWS = 2_000

one_storage = pytest.mark.parametrize("url", ["redis"], indirect=True)
"""Where the storage has no part in it."""


@pytest.fixture
def jobs(spark: SparkSession) -> DataFrame:
    """Return rows of two partitions."""
    return spark.range(0, ROWS, 1, 2).select(
        sf.col("id").cast("string").alias("id"), sf.to_json(sf.struct("id")).alias("payload")
    )


def save(frame: DataFrame, url: str, **options: Any) -> None:
    writer = frame.write.format("headrace").mode("append").option("url", url)
    for name, value in {"task": "load", "queue": "a", **options}.items():
        writer = writer.option(name, value)
    writer.save()


def queued(app: SyncApp[None], queue: str = "a") -> int:
    return app.queue(queue).stats().queued


@pytest.mark.parametrize("commit", ["direct", "atomic"])
def test_rows_become_jobs_once(jobs: DataFrame, url: str, app: SyncApp[None], commit: str) -> None:
    for _ in range(2):
        save(jobs, url, commit=commit)
        assert queued(app) == ROWS
    found = app.job("1999", queue="a").status()
    assert (found.task, found.args) == ("load", {"id": 1999})


def test_an_atomic_write_makes_ids_for_rows_that_have_none(
    jobs: DataFrame, url: str, app: SyncApp[None]
) -> None:
    without = jobs.drop("id")
    save(without, url, commit="atomic", writeId="load-7")
    save(without, url, commit="atomic", writeId="load-7")
    report = app.write_report("load-7", queue="a")
    assert report is not None
    assert (report.rows, report.added) == (ROWS, ROWS)
    assert queued(app) == ROWS
    assert stages_left(url) == 0


@one_storage
def test_random_ids_have_to_be_asked_for_in_a_direct_write(
    jobs: DataFrame, url: str, app: SyncApp[None]
) -> None:
    with pytest.raises(PySparkException, match="no column 'id', and with random ids"):
        save(jobs.drop("id"), url)
    save(jobs.drop("id"), url, allowRandomIds=True)
    assert queued(app) == ROWS


@one_storage
def test_what_a_row_asks_for_is_done(jobs: DataFrame, url: str, app: SyncApp[None]) -> None:
    rich = jobs.limit(1).select(
        "*",
        sf.lit("other").alias("task"),
        sf.lit("b").alias("queue"),
        sf.lit(9).alias("priority"),
        sf.lit("2031-01-31 12:00:00").cast("timestamp").alias("run_at"),
        sf.lit(86_400).alias("keep"),
        sf.lit(None).cast("double").alias("timeout"),
    )
    save(rich, url)
    found = app.job("0", queue="b").status()
    assert (found.task, found.priority) == ("other", 9)
    assert found.due_at is not None
    # The session is in New York.
    assert found.due_at.isoformat() == "2031-01-31T17:00:00+00:00"


@pytest.fixture
def failing_once(spark: SparkSession, tmp_path: Path) -> Iterator[Any]:
    """Return a function of rows that raises late in each partition, at the first try."""
    folder = str(tmp_path)
    # So that some rows are written before.
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 100)

    @sf.udf("string", useArrow=False)
    def payload(row: int) -> str:
        from pathlib import Path

        marker = Path(folder) / f"failed-{row}"
        if row % 1_000 == 900 and not marker.exists():
            marker.touch()
            raise OSError("the first attempt")
        return "{}"

    yield payload
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert len(list(tmp_path.glob("failed-*"))) == 2


@pytest.mark.parametrize("commit", ["direct", "atomic"])
def test_a_task_that_spark_repeats_brings_its_rows_once(
    jobs: DataFrame, url: str, app: SyncApp[None], failing_once: Any, commit: str
) -> None:
    rows = jobs.withColumn("payload", failing_once(sf.col("id").cast("int")))
    save(rows if commit == "direct" else rows.drop("id"), url, commit=commit)
    assert queued(app) == ROWS
    assert stages_left(url) == 0


@one_storage
@pytest.mark.parametrize("commit", ["direct", "atomic"])
def test_a_row_that_cannot_be_a_job_fails_the_write(
    jobs: DataFrame, url: str, app: SyncApp[None], commit: str
) -> None:
    bad = jobs.withColumn("payload", sf.when(sf.col("id") != "1500", sf.col("payload")))
    with pytest.raises(PySparkException, match="the row with id '1500' has no payload"):
        save(bad, url, commit=commit)
    # The other partition is there as a whole where nothing holds it back.
    assert queued(app) == (ROWS / 2 if commit == "direct" else 0)
    assert stages_left(url) == 0


@one_storage
def test_what_is_wrong_is_said_before_a_task_runs(jobs: DataFrame, url: str) -> None:
    for frame, options, said in [
        (jobs.withColumn("prio", sf.lit(1)), {}, "'prio' is none that a job has.*'priority'"),
        (jobs, {"quue": "a"}, "'quue' of a write is not known: did you mean queue"),
        (jobs, {"queue": "a b"}, "queue 'a b' is not valid"),
        (jobs, {"idFrom": "a"}, "'idfrom' is an argument of headrace.spark.prepare"),
        (jobs, {"writeId": "w"}, "writeId='w' is for commit=atomic"),
    ]:
        with pytest.raises(PySparkException, match=said):
            save(frame, url, **options)


@one_storage
def test_map_in_arrow_writes_as_well(jobs: DataFrame, url: str, app: SyncApp[None]) -> None:
    options = WriteOptions(url=url, task="load", queue="a", is_atomic=True)
    terms = terms_of(options)
    rows = jobs.mapInArrow(in_arrow(options, terms), WRITTEN).collect()
    assert finish(options, terms, map(read_written, rows)).added == ROWS
    assert queued(app) == ROWS


@one_storage
def test_a_queue_is_never_overwritten(jobs: DataFrame, url: str) -> None:
    with pytest.raises(PySparkException, match=r"a queue is never overwritten.*mode\('append'\)"):
        jobs.write.format("headrace").mode("overwrite").option("url", url).save()
    for mode in ("error", "ignore"):  # Spark's own words; "error" is what it has if none is said
        with pytest.raises(PySparkException, match=r'"headrace" cannot be written .* "Append"'):
            jobs.write.format("headrace").mode(mode).option("url", url).save()


def test_a_server_that_is_down_is_said_at_once(jobs: DataFrame) -> None:
    with pytest.raises(PySparkException, match=r"StorageUnavailable: .*refused"):
        save(jobs, "redis://127.0.0.1:1")

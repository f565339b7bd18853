"""What becomes jobs, and of them, where the session is one of Spark Connect."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.connect.session import SparkSession

from headrace import InvalidRows, SyncApp
from headrace.spark import (
    FrameReport,
    enqueue_batch,
    enqueue_dataframe,
    enqueue_partition,
    failures_by_error,
    prepare,
    results,
)
from tests.spark.support.ids import id_of
from tests.support.threads import working

ROWS = "select explode(array('ann', 'bob', 'ann')) as user, timestamp'2024-07-01 12:00:00Z' as at"


@pytest.fixture
def url(redis_url: str) -> str:
    return redis_url


def test_rows_become_jobs_and_come_back(
    connect: SparkSession, app: SyncApp[None], url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @app.task(name="greet", queue="q", max_attempts=1)
    def greet(user: str) -> str:
        if user == "bob":
            raise ValueError("not bob")
        return f"hello {user}"

    jobs = prepare(
        connect.sql(ROWS), task="greet", id_from=["user", "at"], payload="user", duplicates="keep"
    )
    at = "2024-07-01T12:00:00.000000Z"
    ann, bob = (id_of({"user": user, "at": at}, task="greet") for user in ("ann", "bob"))
    assert enqueue_dataframe(jobs, queue="q", url=url, progress=True) == FrameReport(
        rows=3, added=3, duplicates=0, queue="q"
    )
    assert "Rows to queue q: " in capsys.readouterr().err
    again = enqueue_dataframe(jobs, queue="q", url=url, commit="atomic", write_id="w")
    assert (again.rows, again.added, again.is_known) == (3, 0, False)
    assert enqueue_dataframe(jobs, queue="q", url=url, commit="atomic", write_id="w").is_known
    with working(app):
        found = results(jobs.select("id"), queue="q", url=url, wait=True, timeout=60)
    told = {row.id: (row.state, row.result, row.message) for row in found.collect()}
    assert told == {
        f"{ann}-1": ("completed", '"hello ann"', None),
        f"{ann}-2": ("completed", '"hello ann"', None),
        f"{bob}-1": ("failed", None, "not bob"),
    }
    [failure] = failures_by_error(found).collect()
    assert (failure["count"], failure["example_ids"]) == (1, [f"{bob}-1"])


def test_a_row_that_is_no_job_is_named(connect: SparkSession, url: str) -> None:
    df = connect.sql("select 'row-7' as id, double('NaN') as x, cast(null as string) as payload")
    with pytest.raises(
        InvalidRows, match="'x' has a NaN or an infinity, which JSON has not, in the row of id"
    ):
        enqueue_dataframe(prepare(df, id="id", task="t", payload="x"), url=url)
    with pytest.raises(InvalidRows, match="the row with id 'row-7' has no payload"):
        enqueue_dataframe(df.drop("x"), task="t", url=url)


class Stream:
    """One file of rows as a stream."""

    def __init__(self, connect: SparkSession, directory: Path) -> None:
        self._directory = directory
        (directory / "rows").mkdir()
        (directory / "rows" / "0.json").write_text('{"user": "ann"}\n{"user": "bob"}')
        self._rows = connect.readStream.schema("user string").json(str(directory / "rows"))

    def run(self, batch: Any) -> None:
        query = (
            self._rows.writeStream.foreachBatch(batch)
            .option("checkpointLocation", str(self._directory / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


@pytest.fixture
def stream(connect: SparkSession, tmp_path: Path) -> Stream:
    return Stream(connect, tmp_path)


def test_micro_batches_become_jobs(stream: Stream, app: SyncApp[None], url: str) -> None:
    stream.run(enqueue_batch(task="t", queue="q", url=url, id_from="user", query="users"))
    assert {job.id for job in app.queue("q").jobs("queued")} == {
        id_of({"user": user}, task="t", salt="users:0") for user in ("ann", "bob")
    }


def test_what_fails_a_stream_is_in_its_error(stream: Stream, url: str) -> None:
    with pytest.raises(StreamingQueryException, match=r"Spark Connect does not tell which stream"):
        stream.run(enqueue_batch(task="t", queue="q", url=url, id_from="user"))
    away = enqueue_batch(task="t", url="redis://localhost:1", id="user", retry_for=0)
    with pytest.raises(StreamingQueryException, match=r"headrace\.errors\.StorageUnavailable: "):
        stream.run(away)


def test_partitions_become_jobs(connect: SparkSession, app: SyncApp[None], url: str) -> None:
    jobs: DataFrame = prepare(connect.sql(ROWS), task="t", id="user")
    jobs.foreachPartition(enqueue_partition(queue="q", url=url))
    assert app.queue("q").stats().queued == 2


def test_what_is_of_the_driver_says_so_there(connect: SparkSession, app: SyncApp[None]) -> None:
    handle = app.job("7", queue="q")

    def wait(rows: Any) -> None:
        handle.result(1)

    with pytest.raises(pickle.PicklingError, match="SyncJobHandle is of this process"):
        connect.range(2).foreachPartition(wait)

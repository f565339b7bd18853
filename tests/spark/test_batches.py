"""Micro-batches and partitions become jobs, also where Spark runs a micro-batch again."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from headrace import InvalidOption, InvalidRows, SyncApp, UsageError
from headrace.spark import enqueue_batch, enqueue_partition, prepare

ForeachBatch = Callable[[DataFrame, int], None]


class Stream:
    """Files of rows as a stream, a micro-batch each, with a checkpoint."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._spark = spark
        self._rows = directory / "rows"
        self._checkpoint = directory / "checkpoint"
        self._rows.mkdir()

    def add(self, *users: str) -> None:
        number = len(list(self._rows.iterdir()))
        lines = [json.dumps({"user": user}) for user in users]
        (self._rows / f"{number}.json").write_text("\n".join(lines))

    def run(self, batch: ForeachBatch) -> None:
        rows = self._spark.readStream.schema("user string").option("maxFilesPerTrigger", 1)
        query = (
            rows.json(str(self._rows))
            .writeStream.foreachBatch(batch)
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def forget_last_commit(self) -> None:
        commits = self._checkpoint / "commits"
        last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
        (commits / str(last)).unlink()
        (commits / f".{last}.crc").unlink(missing_ok=True)


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


def arguments(app: SyncApp[None]) -> list[str]:
    handles = (app.job(job.id, queue="q") for job in app.queue("q").jobs("queued"))
    return sorted(handle.status().args["user"] for handle in handles)


@pytest.mark.parametrize("commit", ["direct", "atomic"])
def test_a_micro_batch_that_is_run_again_brings_nothing_twice(
    commit: Any, stream: Stream, app: SyncApp[None], url: str
) -> None:
    ids: dict[str, Any] = {"id_from": "user"} if commit == "direct" else {"payload": ["user"]}
    batch = enqueue_batch(task="greet", queue="q", url=url, commit=commit, **ids)
    stream.add("ann", "bob", "bob")
    stream.add("ann")
    stream.run(batch)
    expected = ["ann", "ann", "bob"] if commit == "direct" else ["ann", "ann", "bob", "bob"]
    assert arguments(app) == expected
    stream.forget_last_commit()
    stream.add("cid")
    stream.run(batch)
    assert arguments(app) == [*expected, "cid"]


def test_equal_rows_of_two_batches_may_be_one_job(
    stream: Stream, app: SyncApp[None], url: str
) -> None:
    stream.add("ann")
    stream.add("ann", "bob")
    stream.run(enqueue_batch(task="greet", queue="q", url=url, id_from="user", per_batch=False))
    assert arguments(app) == ["ann", "bob"]


def test_a_checkpoint_that_fell_behind_is_told(
    spark: SparkSession, app: SyncApp[None], url: str
) -> None:
    batch = enqueue_batch(
        task="greet", queue="q", url=url, commit="atomic", payload=["user"], query="users"
    )
    df = spark.sql("select 'ann' as user")
    batch(df, 3)
    batch(df, 3)
    with pytest.raises(UsageError, match=r"micro-batch 2 brought in nothing: write 'stream:users'"):
        batch(df, 2)
    assert arguments(app) == ["ann"]


def test_rows_may_be_prepared_before(spark: SparkSession, app: SyncApp[None], url: str) -> None:
    df = prepare(spark.sql("select 'ann' as user"), id="user", task="greet", payload="user")
    enqueue_batch(queue="q", url=url)(df, 0)
    assert arguments(app) == ["ann"]


def test_a_batch_goes_to_another_process(spark: SparkSession, app: SyncApp[None], url: str) -> None:
    batch = enqueue_batch(task="greet", queue="q", url=url, id="user", payload=["user"])
    sent = pickle.loads(cloudpickle.dumps(batch))  # noqa: S301 (it is ours)
    sent(spark.sql("select 'ann' as user"), 0)
    assert arguments(app) == ["ann"]


def test_what_fails_a_stream_is_in_its_error(stream: Stream) -> None:
    stream.add("ann")
    away = enqueue_batch(task="t", queue="q", url="redis://localhost:1", id="user", retry_for=0)
    with pytest.raises(StreamingQueryException, match=r"headrace\.errors\.StorageUnavailable: "):
        stream.run(away)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"id": "a", "id_from": "b"}, "say one of them"),
        ({"query": ""}, "query '' is not valid"),
        ({"commit": "both"}, "use direct or atomic"),
        ({"quue": "q"}, "did you mean queue"),
        ({"payload": {"x": ["y"]}}, "say a column by its name"),
    ],
)
def test_what_is_not_valid_is_said_at_once(said: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        enqueue_batch(**said)


def test_a_frame_that_is_no_batch_of_a_stream_needs_a_name(spark: SparkSession, url: str) -> None:
    with pytest.raises(InvalidOption, match="no batch of a stream: say enqueue_batch"):
        enqueue_batch(id_from="user", url=url)(spark.sql("select 'ann' as user"), 0)


def test_partitions_become_jobs(spark: SparkSession, app: SyncApp[None], url: str) -> None:
    due_at = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    df = spark.sql(f"select explode(array('a', 'b')) as id, timestamp'{due_at.isoformat()}' as due")
    jobs = prepare(
        df, task="t", id="id", options={"run_at": "due", "keep": F.lit(9).cast("decimal")}
    )
    jobs = jobs.withColumn("payload", F.col("payload").cast("binary"))
    jobs.foreachPartition(enqueue_partition(queue="q", url=url))
    a = app.job("a", queue="q").status()
    assert (a.args, a.due_at) == ({}, due_at)
    assert app.queue("q").stats().scheduled == 2


def test_rows_of_a_partition_that_are_no_jobs_are_refused(tmp_path: Path) -> None:
    enqueue = enqueue_partition(queue="q", task="t", url=f"file://{tmp_path}/data")
    with pytest.raises(InvalidRows, match="the column 'colour' is none that a job has"):
        enqueue([Row(id="a", payload="{}", colour=1)])
    with pytest.raises(InvalidRows, match="the column 'delay' can't be read"):
        enqueue([Row(id="a", payload="{}", delay="soon")])
    with pytest.raises(InvalidRows, match="the row with id 'b' has no payload"):
        enqueue([Row(id="a", payload="{}"), Row(id="b", payload=None)])
    with pytest.raises(InvalidOption, match="needs the driver at the end"):
        enqueue_partition(commit="atomic")


def test_an_app_may_be_captured(spark: SparkSession, app: SyncApp[None], url: str) -> None:
    def greet(rows: Any) -> None:
        for row in rows:
            app.task_ref("greet", queue="q").enqueue(user=row.user)

    spark.sql("select explode(array('ann', 'bob')) as user").foreachPartition(greet)
    assert arguments(app) == ["ann", "bob"]


def test_what_is_of_the_driver_says_so_there(spark: SparkSession, app: SyncApp[None]) -> None:
    queue, handle = app.queue("q"), app.job("7", queue="q")

    def look(rows: Any) -> None:
        queue.stats()

    def wait(number: int) -> str:
        return str(handle.result(number))

    with pytest.raises(pickle.PicklingError, match=r"SyncQueue is of this process.*app\.queue"):
        spark.range(2).foreachPartition(look)
    with pytest.raises(pickle.PicklingError, match=r"SyncJobHandle is of this process.*app\.job"):
        spark.range(2).select(F.udf(wait, "string", useArrow=False)("id")).collect()

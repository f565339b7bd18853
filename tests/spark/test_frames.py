"""A DataFrame becomes jobs, and each handler gets what stood in its row."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from anyio import to_thread
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace import App, InvalidOption, InvalidRows, ReplyLost, StorageUnavailable, SyncApp
from headrace.spark import FrameReport, enqueue_dataframe, prepare, results
from tests.spark.support.gates import Gate, pass_gate
from tests.spark.support.stages import stages_left
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.threads import blocked_until, working


@dataclass
class Parcel:
    grams: int | None
    sent: datetime


def waiting(app: SyncApp[None], queue: str) -> int:
    return app.queue(queue).stats().queued


def numbered(spark: SparkSession, rows: int, partitions: int = 2) -> DataFrame:
    return prepare(spark.range(rows, numPartitions=partitions), task="count", id="id", payload=[])


def test_handlers_get_what_stood_in_rows(spark: SparkSession, app: SyncApp[None], url: str) -> None:
    got: dict[str, tuple[Any, ...]] = {}

    @app.task(name="keep", queue="q")
    def keep(
        *,
        key: str,
        at: datetime,
        local: datetime,
        day: date,
        price: Decimal,
        ratio: float,
        data: bytes,
        tags: dict[str, int | None],
        numbers: list[int | None],
        parcel: Parcel | None,
        nothing: str | None,
        plain: Any,
    ) -> None:
        got[key] = (at, local, day, price, ratio, data, tags, numbers, parcel, nothing, plain)

    row = """
        timestamp'2024-07-01 12:00:00.123456Z' as at,
        timestamp_ntz'2024-07-01 12:00:00' as local,
        date'2024-07-01' as day,
        cast('12345678901234567890.123456789012345678' as decimal(38,18)) as price,
        0.1D as ratio,
        cast(repeat('ÿ', 60) as binary) as data,
        map('a', 1, 'b', null) as tags,
        array(1, null) as numbers
    """
    df = spark.sql(
        f"""select 'full' as key, {row}, 'x' as nothing, 1.5BD as plain,
        named_struct('grams', 7, 'sent', timestamp'2024-01-01 00:00:00Z') as parcel
        union all select 'bare', {row}, null, null, null"""
    )
    jobs = prepare(df, task="keep", id_from="key")
    report = enqueue_dataframe(jobs, queue="q", url=url)
    assert report == FrameReport(rows=2, added=2, duplicates=0, queue="q")
    with working(app):
        ended = results(jobs, queue="q", url=url, wait=True, timeout=60)
        assert {row.state for row in ended.select("state").collect()} == {"completed"}
    same = (
        datetime(2024, 7, 1, 12, 0, 0, 123456, UTC),
        datetime(2024, 7, 1, 12),  # noqa: DTZ001 (it has none)
        date(2024, 7, 1),
        Decimal("12345678901234567890.123456789012345678"),
        0.1,
        ("ÿ" * 60).encode(),
        {"a": 1, "b": None},
        [1, None],
    )
    parcel = Parcel(7, datetime(2024, 1, 1, tzinfo=UTC))
    assert got == {"full": (*same, parcel, "x", 1.5), "bare": (*same, None, None, None)}


def test_options_of_jobs_are_columns(spark: SparkSession, app: SyncApp[None], url: str) -> None:
    due_at = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    df = spark.sql(
        f"""select 'a' as id, 9 as rank, 'mails' as q, null as after, null as due
        union all select 'b', null, 'files', 3600.5BD, null
        union all select 'c', 0, 'files', null, timestamp'{due_at.isoformat()}'"""
    )
    options = {"priority": "rank", "delay": "after", "run_at": "due", "keep": 60}
    jobs = prepare(df, task="send", id="id", queue=F.col("q"), payload=[], options=options)
    assert enqueue_dataframe(jobs, url=url).added == 3
    a, b, c = (
        app.job(job_id, queue=queue).status()
        for job_id, queue in {"a": "mails", "b": "files", "c": "files"}.items()
    )
    assert (a.priority, a.task, b.priority, c.priority) == (9, "send", 5, 0)
    assert b.due_at is not None
    assert b.due_at - b.created_at == timedelta(seconds=3600.5)
    assert c.due_at == due_at


def test_a_direct_write_that_is_run_again_brings_the_rest(
    spark: SparkSession, app: SyncApp[None], url: str
) -> None:
    first = enqueue_dataframe(numbered(spark, 700), queue="q", url=url)
    assert first == FrameReport(rows=700, added=700, duplicates=0, queue="q")
    again = enqueue_dataframe(numbered(spark, 1_000), queue="q", url=url, batch_size=100)
    assert again == FrameReport(rows=1_000, added=300, duplicates=700, queue="q")
    assert waiting(app, "q") == 1_000


def test_an_atomic_write_that_is_run_again_brings_nothing(
    spark: SparkSession, app: SyncApp[None], url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = numbered(spark, 1_200).drop("id")

    def write(**said: Any) -> FrameReport:
        return enqueue_dataframe(jobs, queue="q", url=url, commit="atomic", **said)

    report = write(write_id="day-7", progress=True)
    assert report == FrameReport(rows=1_200, added=1_200, duplicates=0, queue="q", write_id="day-7")
    shown = capsys.readouterr().err.splitlines()
    assert "Rows to queue q: 2 of 2" in shown
    assert shown[-1] == "Jobs of queue q: 1,200 of 1,200"
    assert write(write_id="day-7").is_known
    assert waiting(app, "q") == 1_200
    assert write().write_id != write().write_id
    assert waiting(app, "q") == 3_600


def test_a_row_that_is_no_job_stops_an_atomic_write(spark: SparkSession, redis_url: str) -> None:
    url, app = redis_url, SyncApp(redis_url)
    jobs = numbered(spark, 600).withColumn("id", F.when(F.col("id") != "7", F.col("id")))
    with pytest.raises(InvalidRows, match="1 of 300 rows of a batch have no id"):
        enqueue_dataframe(jobs, queue="q", url=url, commit="atomic", write_id="w")
    assert waiting(app, "q") == 0
    fixed = enqueue_dataframe(
        numbered(spark, 600), queue="q", url=url, commit="atomic", write_id="w"
    )
    assert (fixed.added, fixed.is_known) == (600, False)


def test_what_other_partitions_have_staged_is_dropped_with_the_one_that_fails(
    spark: SparkSession, url: str, app: SyncApp[None], tmp_path: Path
) -> None:
    gate = Gate(tmp_path / "gate")
    path = gate.path

    def fail_late(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if TaskContext.get().partitionId() == 1:
                pass_gate(path)
                raise RuntimeError("it fails")
            yield batch

    jobs = numbered(spark, 1_000)
    jobs = jobs.mapInArrow(fail_late, jobs.schema)
    with gate, ThreadPoolExecutor(1) as thread:
        write = thread.submit(enqueue_dataframe, jobs, queue="q", url=url, commit="atomic")
        blocked_until(lambda: write.done() or tasks_done(spark) == 1)
        assert stages_left(url) == 1
        gate.open()
        with pytest.raises(PySparkException, match="it fails"):
            write.result()
    assert stages_left(url) == 0
    assert waiting(app, "q") == 0


def tasks_done(spark: SparkSession) -> int:
    """Return how many tasks Spark has done of the stage that it is at."""
    tracker = spark.sparkContext.statusTracker()
    found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return sum(stage.numCompletedTasks for stage in found if stage)


async def test_a_lost_answer_to_a_commit_says_under_which_name_to_write_again(
    spark: SparkSession, redis_server: RedisServer, redis_url: str
) -> None:
    jobs = numbered(spark, 1_000).drop("id")

    def write(url: str, **said: Any) -> FrameReport:
        return enqueue_dataframe(jobs, queue="q", url=url, commit="atomic", retry_for=0, **said)

    async with App(redis_url) as app:
        await app.enqueue("t", queue="other")  # so that the functions are there
    async with Proxy(redis_server.port) as proxy:
        proxy.drop_next_reply(after=b"_commit")
        with pytest.raises(ReplyLost) as caught:
            await to_thread.run_sync(write, proxy.url)
    [note] = caught.value.__notes__
    [write_id] = re.findall("run it again with write_id='(.*)': nothing comes twice", note)
    report = write(redis_url, write_id=write_id)
    assert (report.rows, report.added, report.is_known) == (1_000, 1_000, True)


def test_a_task_that_spark_repeats_brings_nothing_twice(
    spark: SparkSession, redis_url: str
) -> None:
    url, app = redis_url, SyncApp(redis_url)

    def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        for batch in batches:
            yield batch
            if "900" in batch.column("id").to_pylist() and not context.attemptNumber():
                raise RuntimeError("the first attempt fails")

    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    jobs = numbered(spark, 1_000)
    jobs = jobs.mapInArrow(fail_once, jobs.schema)
    try:
        direct = enqueue_dataframe(jobs, queue="direct", url=url)
        atomic = enqueue_dataframe(jobs, queue="atomic", url=url, commit="atomic")
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert direct.rows == atomic.rows == atomic.added == 1_000
    assert waiting(app, "direct") == waiting(app, "atomic") == 1_000


def test_more_rows_than_a_queue_remembers_are_warned_of(
    spark: SparkSession, app: SyncApp[None], url: str
) -> None:
    app.queue("q").configure(history=5)
    with pytest.warns(UserWarning, match="6 rows were written to queue 'q', which remembers 5"):
        enqueue_dataframe(numbered(spark, 6), queue="q", url=url)
    enqueue_dataframe(numbered(spark, 5), queue="q", url=url)
    enqueue_dataframe(numbered(spark, 6), queue="q", url=url, commit="atomic", write_id="w")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"commit": "often"}, "commit='often' is not known: use direct or atomic"),
        ({"write_id": "w"}, "write_id='w' is for commit='atomic'"),
        ({"write_id": "", "commit": "atomic"}, "write_id '' is not valid"),
        ({"quue": "q"}, "'quue' is no argument of a write: did you mean queue"),
        ({"batch_size": 501}, "batch_size=501 is out of bounds"),
        ({"stage_ttl": 5}, "stage_ttl=5 is out of bounds"),
        ({"allow_random_ids": "yes"}, "allow_random_ids='yes' is not valid"),
        ({"url": "memory://x"}, "memory://x is in the memory of one process"),
        ({"url": "http://x"}, "http"),
    ],
)
def test_what_is_not_valid_is_said_before_anything_runs(
    said: dict[str, Any], message: str, spark: SparkSession
) -> None:
    with pytest.raises(InvalidOption, match=message):
        enqueue_dataframe(numbered(spark, 1), **said)


def test_columns_and_the_storage_are_checked_first(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidRows, match="no column 'payload'"):
        enqueue_dataframe(spark.sql("select 'a' as id"), task="t", url=f"file://{tmp_path}/data")
    with pytest.raises(StorageUnavailable):
        enqueue_dataframe(numbered(spark, 1), url="redis://localhost:1")
    stream = spark.readStream.format("rate").load()
    with pytest.raises(InvalidOption, match="a stream has no end"):
        enqueue_dataframe(stream)


def test_its_help_lists_what_it_takes() -> None:
    assert {"queue", "url", "commit", "retry_for"} <= set(
        inspect.signature(enqueue_dataframe).parameters
    )
    assert "batch_size: most jobs in a call" in str(enqueue_dataframe.__doc__)

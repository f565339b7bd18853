"""What became of jobs, beside the rows that made them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from headrace import InvalidOption, SyncApp, WaitTimeout, WriteNotFound
from headrace.request import JobRequest
from headrace.spark import enqueue_dataframe, failures_by_error, prepare, results
from headrace.storage.connect import open_blocking
from headrace.storage.steps import at_once
from headrace.testing.contract.bulk_steps import ContractWriter
from tests.support.threads import blocked_until, working

ADDED = ("state", "reason", "result", "has_result", "error", "message", "frame")


def added(df: DataFrame) -> dict[Any, tuple[Any, ...]]:
    return {row["id"]: tuple(row[name] for name in ADDED) for row in df.collect()}


def of_ids(spark: SparkSession, *ids: str | None) -> DataFrame:
    return spark.createDataFrame([(job_id,) for job_id in ids], "id string")


@pytest.fixture
def worked_off(app: SyncApp[None]) -> SyncApp[None]:
    """Return the app with jobs that have ended: 0 to 5, of which 1, 3 and 5 have failed."""

    @app.task(name="halve", queue="q", max_attempts=1)
    def halve(number: int) -> int | None:
        if number % 2:
            raise ValueError(f"{'all' if number < 5 else 'some'} are odd")
        return number // 2 if number else None

    @app.task(name="long", queue="q")
    def long() -> str:
        return "x" * 100_000

    jobs = [halve.options(id=str(n)).job(n) for n in range(6)]
    handles = [*app.enqueue_many(jobs), long.options(id="long").enqueue()]
    with working(app):
        blocked_until(lambda: all(handle.status().state.is_terminal for handle in handles))
    return app


def test_rows_get_what_became_of_their_jobs(
    spark: SparkSession, worked_off: SyncApp[None], url: str
) -> None:
    df = of_ids(spark, "0", "2", "3", "unknown", None, "long").selectExpr(
        "id", "timestamp'2024-07-01 12:00:00.123456' as at", "array(1, null) as parts"
    )
    found = results(df, queue="q", url=url)
    assert found.columns == ["id", "at", "parts", *ADDED]
    told = added(found)
    assert told.pop("long") == ("completed", None, f'"{"x" * 100_000}"', True, None, None, None)
    error, message, frame = told["3"][4:]
    assert (error, message) == ("ValueError", "all are odd")
    assert frame.startswith(f"{Path(__file__)}:")
    assert frame.endswith(" in halve")
    nothing = (None, None, None, False, None, None, None)
    assert told == {
        "0": ("completed", None, "null", True, None, None, None),
        "2": ("completed", None, "1", True, None, None, None),
        "3": ("failed", "exhausted", None, False, error, message, frame),
        "unknown": nothing,
        None: nothing,
    }
    assert (
        found.select("at", "parts").distinct().collect()
        == df.select("at", "parts").limit(1).collect()
    )


def test_failures_are_counted_by_error(
    spark: SparkSession, worked_off: SyncApp[None], url: str
) -> None:
    found = results(of_ids(spark, *map(str, range(6))), queue="q", url=url, wait=True)
    assert [
        (row["error"], row["message"], row["count"], row["example_ids"])
        for row in failures_by_error(found).collect()
    ] == [
        ("ValueError", "all are odd", 2, ["1", "3"]),
        ("ValueError", "some are odd", 1, ["5"]),
    ]


def test_jobs_are_waited_for(
    spark: SparkSession, app: SyncApp[None], url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    may_end = Event()

    @app.task(name="stay", queue="q")
    def stay(number: int) -> int:
        if number:
            may_end.wait(60)
        return number

    app.enqueue_many(stay.options(id=str(n)).job(n) for n in range(3))
    df = of_ids(spark, "2", "0", "1", "none such", None)
    with working(app, concurrency=3):
        app.job("0", queue="q").result(30)
        with pytest.raises(WaitTimeout, match="2 of 4 jobs of queue 'q' have not ended after 0"):
            results(df, queue="q", url=url, wait=True, timeout=0)
        may_end.set()
        found = results(df, queue="q", url=url, wait=True, progress=True)
    assert {row["state"] for row in found.where("id < '3'").collect()} == {"completed"}
    assert capsys.readouterr().err.splitlines()[-1] == "Jobs: 4 of 4"


@pytest.fixture
def committed(url: str, app: SyncApp[None]) -> str:
    """Commit a write of jobs 0 to 2, of which 0 is there already, and leave it so; return its id.

    So does a driver that dies before it publishes.
    """

    @app.task(name="halve", queue="q")
    def halve(number: int) -> int:
        return number // 2

    payload = b'{"number":2}'
    jobs = [JobRequest(id=str(n), queue="q", task="halve", payload=payload) for n in range(3)]
    halve.options(id="0").enqueue(2)
    with closing(open_blocking(url)) as storage:
        writer = ContractWriter(storage, "w", queue="q")
        at_once(writer.stage(*jobs))
        at_once(writer.commit())
    return "w"


def test_a_write_that_is_committed_is_published_before_its_jobs_are_waited_for(
    spark: SparkSession,
    app: SyncApp[None],
    url: str,
    committed: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    df = of_ids(spark, "0", "1", "2")
    said: dict[str, Any] = {"queue": "q", "url": url, "wait": True, "progress": True}
    with pytest.raises(WaitTimeout, match="3 of 3 jobs of write 'w' are not stored in queue 'q'"):
        results(df, **said, write_id=committed, timeout=0)
    assert capsys.readouterr().err == ""
    with working(app):
        found = results(df, **said, write_id=committed, timeout=60)
    assert [row.state for row in found.collect()] == ["completed"] * 3
    told = capsys.readouterr().err.splitlines()
    assert (told[0], told[-1]) == ("Jobs stored: 3 of 3", "Jobs: 3 of 3")


def test_a_write_that_is_not_known_is_not_waited_for(spark: SparkSession, url: str) -> None:
    df = of_ids(spark, "0")
    with pytest.raises(WriteNotFound, match="write 'w' is not known in queue 'q': it was never"):
        results(df, queue="q", url=url, wait=True, write_id="w")


def test_a_report_says_what_to_wait_for(spark: SparkSession, app: SyncApp[None], url: str) -> None:
    df = of_ids(spark, "a", "b").selectExpr("id", "'{}' as payload")
    for report in (
        enqueue_dataframe(df, task="t", queue="q", url=url, commit="atomic"),
        enqueue_dataframe(df, task="t", queue="q", url=url),
    ):
        with pytest.raises(WaitTimeout, match="2 of 2 jobs of queue 'q' have not ended"):
            results(df, queue="q", url=url, wait=True, write_id=report.write_id, timeout=0)


def test_ids_are_made_again_of_the_rows(spark: SparkSession, app: SyncApp[None], url: str) -> None:
    rows = spark.sql("select 7 as number, 'ann' as user union all select 8, 'bob'")
    enqueue_dataframe(prepare(rows, task="t", id_from=["number", "user"]), queue="q", url=url)
    app.enqueue("t", queue="q", number=9)
    found = results(rows, queue="q", url=url, id_from=["user", "number"], task="t", id_column="job")
    assert found.columns == ["number", "user", "job", *ADDED]
    assert {(row.user, row.state) for row in found.collect()} == {
        ("ann", "queued"),
        ("bob", "queued"),
    }


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"queue": "a b"}, "queue 'a b' is not valid"),
        ({"queue": "q", "id_column": "key"}, "no column 'key' with ids.*of id, n, state"),
        ({"queue": "q", "id_column": "n"}, "'n' is of type int, and ids are strings"),
        ({"queue": "q"}, "state would be added: drop or rename"),
        ({"queue": "q", "id_from": "n"}, "a column 'id' already: say id_column"),
        ({"queue": "q", "id_from": "m", "id_column": "job"}, "no column 'm'"),
        ({"queue": "q", "task": "t"}, "it needs id_from"),
        ({"queue": "q", "timeout": 3}, "for wait=True"),
        ({"queue": "q", "write_id": "w"}, "for wait=True"),
        ({"queue": "q", "wait": True, "write_id": ""}, "write_id '' is not valid"),
        ({"queue": "q", "wait": True, "timeout": -1}, "timeout=-1 is out of bounds"),
    ],
)
def test_what_is_not_valid_is_said_at_once(
    said: dict[str, Any], message: str, spark: SparkSession
) -> None:
    df = spark.sql("select 'x' as id, 1 as n, 'new' as state")
    with pytest.raises(InvalidOption, match=message):
        results(df, **said)


def test_a_stream_is_not_waited_for(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("cast(value as string) as id")
    with pytest.raises(InvalidOption, match="for a DataFrame that ends"):
        results(stream, queue="q", wait=True)

"""Ended jobs are read as rows: all of them, or as they end."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, Row, SparkSession

from headrace import SyncApp
from headrace.outcome import Cancelled, Retried
from tests.spark.support.worked import DEAD, DONE, TRACEBACK, dead, done, payload_of, work
from tests.support.until import patience

ON_REDIS = pytest.mark.parametrize("url", ["redis"], indirect=True)
"""Of what the storage has no part in."""

READ = {"read": "dead", "queue": "orders"}


def reader(spark: SparkSession, url: str, **options: Any) -> DataFrameReader:
    return spark.read.format("headrace").options(**{**READ, "url": url, **options})


def rows(frame: DataFrame) -> list[Row]:
    return sorted(frame.collect(), key=lambda row: row["job_id"])


def ids(frame: DataFrame) -> list[str]:
    return [row["job_id"] for row in rows(frame)]


def test_a_dead_letter_comes_with_all_that_is_kept_of_it(spark: SparkSession, url: str) -> None:
    work(url, {"a": DEAD, "b": DONE})
    [row] = rows(reader(spark, url).load())
    assert (row["tenant"], row["queue"], row["job_id"]) == ("default", "orders", "a")
    assert (row["task"], row["state"], row["reason"]) == ("charge", "failed", "exhausted")
    assert (row["priority"], row["lane"]) == (5, "default")
    assert (row["max_stalls"], row["keep_ms"], row["on_failed"]) == (3, 3_600_000, None)
    assert (row["limit_keys"], row["fair_key"], row["slots"]) == (None, None, 1)
    assert (row["failures"], row["stalls"], row["starts"], row["run_ms"]) == (1, 0, 1, 3)
    assert bytes(row["payload"]) == payload_of("a")
    assert (row["options"], row["result"], row["has_result"]) == (None, None, False)
    assert (row["error"], row["message"], row["traceback"]) == ("ValueError", "no cents", TRACEBACK)
    assert row["frame"] == "shop.py:7 in charge"
    [error] = json.loads(row["errors"])
    assert (error["type"], error["start"]) == ("ValueError", 1)
    with SyncApp[None](url) as app:
        [job] = app.queue("orders").export("failed")
    assert row["cursor"] == job.cursor
    assert instants(row) == [job.created_at, job.ended_at]


def instants(row: Row) -> list[datetime]:
    return [row[name].astimezone(UTC) for name in ("created_at", "ended_at")]


def test_jobs_of_all_states_and_queues_are_read_together(spark: SparkSession, url: str) -> None:
    retried = Retried(0, DEAD.error)
    work(url, {"a": DEAD, "b": DONE, "c": Cancelled(3_600_000), "waits": retried})
    work(url, {"d": DONE}, queue="mails")
    work(url, {"z": DONE}, tenant="other")
    found = rows(reader(spark, url, read="jobs", queue="*").load())
    assert [(row["job_id"], row["queue"], row["state"]) for row in found] == [
        ("a", "orders", "failed"),
        ("b", "orders", "completed"),
        ("c", "orders", "cancelled"),
        ("d", "mails", "completed"),
    ]
    assert [bytes(row["result"]) for row in found if row["has_result"]] == [b'"charged"'] * 2
    wanted = reader(spark, url, read="jobs", states="completed,cancelled").load()
    assert ids(wanted) == ["b", "c"]


def test_more_than_a_page_comes_whole_from_every_number_of_parts(
    spark: SparkSession, url: str
) -> None:
    names = [f"job-{number:03}" for number in range(450)]
    for first in range(0, 450, 150):
        work(url, dead(names[first : first + 150]))
    frames = [reader(spark, url, minPartitions=parts).load() for parts in (1, 3)]
    assert [ids(frame) for frame in frames] == [names, names]


def test_a_read_goes_on_behind_a_cursor_and_up_to_another(spark: SparkSession, url: str) -> None:
    work(url, dead("ab"))
    work(url, dead("c"))
    cursors = {row["job_id"]: row["cursor"] for row in rows(reader(spark, url).load())}

    def offsets(name: str) -> str:
        return json.dumps({"orders": {"failed": cursors[name]}})

    assert ids(reader(spark, url, startingOffsets=offsets("a")).load()) == ["b", "c"]
    between = {"startingOffsets": offsets("a"), "endingOffsets": offsets("b")}
    assert ids(reader(spark, url, **between).load()) == ["b"]


@ON_REDIS
def test_a_read_has_bounds_in_time(spark: SparkSession, url: str) -> None:
    work(url, dead("ab"))
    work(url, dead("c"))
    found = rows(reader(spark, url).load())
    ended_ms = int(found[2]["ended_at"].timestamp() * 1000)
    assert ended_ms > int(found[0]["ended_at"].timestamp() * 1000)
    assert ids(reader(spark, url, startingTimestamp=ended_ms).load()) == ["c"]
    assert ids(reader(spark, url, endingTimestamp=ended_ms).load()) == ["a", "b"]


def test_queues_without_dead_letters_give_no_rows(spark: SparkSession, url: str) -> None:
    work(url, done("a"))
    assert ids(reader(spark, url, queue="orders,mails").load()) == []
    assert ids(reader(spark, url, startingOffsets="latest").load()) == []


@ON_REDIS
@pytest.mark.parametrize(
    ("offsets", "said"),
    [
        ("{", "startingOffsets='{' is not valid"),
        ('{"mails": {"failed": ""}}', "startingOffsets has queue 'mails', which is not read"),
        ('{"orders": {"completed": ""}}', "has state 'completed': use some of failed"),
        ('{"orders": {"failed": "7-0"}}', "cursor='7-0' is not one of an export"),
        ('{"orders": {"failed": "failed:orders:x:y"}}', "is not one of an export"),
    ],
    ids=["no JSON", "another queue", "another state", "no cursor", "no instant"],
)
def test_offsets_that_are_none_are_refused(
    offsets: str, said: str, spark: SparkSession, url: str
) -> None:
    with pytest.raises(PySparkException, match=said):
        reader(spark, url, startingOffsets=offsets).load().collect()


def test_a_stream_brings_each_end_once_through_restarts(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    def drain() -> list[str]:
        stream = spark.readStream.format("headrace").options(**READ, url=url).load()
        query = (
            stream.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "dead"))
        )
        assert query.awaitTermination(patience(60))
        return [row["job_id"] for row in spark.read.parquet(str(tmp_path / "dead")).collect()]

    work(url, dead("ab"))
    assert sorted(drain()) == ["a", "b"]
    with SyncApp[None](url) as app:
        # The newest place is now behind where the stream has come.
        assert app.queue("orders").redrive("b") == 1
        assert sorted(drain()) == ["a", "b"]
    work(url, dead("bc"))
    assert sorted(drain()) == ["a", "b", "b", "c"]


@ON_REDIS
def test_a_stream_may_begin_with_what_ends_from_now_on(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    work(url, dead("a"))
    seen: list[str] = []
    options = {**READ, "url": url, "startingOffsets": "latest"}
    query = (
        spark.readStream.format("headrace")
        .options(**options)
        .load()
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .foreachBatch(lambda frame, _batch: seen.extend(ids(frame)))
        .start()
    )
    query.processAllAvailable()
    work(url, dead("b"))
    query.processAllAvailable()
    query.stop()
    assert seen == ["b"]


@ON_REDIS
def test_a_stream_has_no_end(spark: SparkSession, url: str) -> None:
    options = {**READ, "url": url, "endingTimestamp": "7"}
    with pytest.raises(PySparkException, match=r"are options of spark\.read: a stream has no end"):
        spark.readStream.format("headrace").options(**options).load().writeStream.format(
            "noop"
        ).start().awaitTermination(60)

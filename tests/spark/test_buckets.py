"""What is counted a bucket is what the events say, and wider buckets say the same."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from headrace.spark.pipeline.buckets import merged, rolled_up
from tests.spark.support.archives import AT, event, events_of

pytestmark = pytest.mark.usefixtures("compiled")


def rows_of(frame: DataFrame) -> list[Row]:
    return frame.orderBy("tenant", "queue", "task", "bucket").collect()


def test_each_transition_is_counted(spark: SparkSession) -> None:
    ended: dict[str, Any] = {"start": 1, "run_ms": 100}
    events = [
        event("queued"),
        event("scheduled"),
        event("queued", detail="due"),
        event("queued", detail="redriven"),
        event("active", start=1, wait_ms=50),
        event("completed", **ended),
        event("completed", start=1, run_ms=0),
        event("retrying", error="ValueError", **ended),
        event("snoozed", start=1, run_ms=9000),
        event("failed", detail="exhausted", **ended),
        event("cancelled", start=1, run_ms=9000),
        event("blocked"),
        event("updated"),
        event("cancelled", detail="next"),
        event("queued", detail="next"),
        event("progress", start=1, detail="0.5 half"),
        event("joined", task=None),
    ]
    [row] = rows_of(rolled_up(events_of(spark, events), "10s"))
    assert row["bucket"].astimezone(UTC) == AT
    assert row["width"] == "10s"
    counts = ("queued", "started", "completed", "retried", "failed", "cancelled", "stalled")
    assert [row[name] for name in counts] == [4, 1, 2, 1, 1, 1, 0]
    assert (row["ended"], row["errors"], row["error_rate"]) == (4, 2, 0.5)
    assert (row["run_count"], row["run_sum_ms"], row["avg_ms"]) == (4, 300, 75.0)
    assert row["p50_ms"] == row["p99_ms"] == pytest.approx(100, rel=0.01)
    assert row["wait_p95_ms"] == pytest.approx(50, rel=0.01)
    assert sum(row["run_histogram"].values()) == 4
    assert sum(row["wait_histogram"].values()) == 1


def test_a_death_is_one_error_even_where_it_ends_the_job(spark: SparkSession) -> None:
    events = [
        event("stalled", start=2, run_ms=40),
        event("failed", detail="stalled", start=2, run_ms=40),
    ]
    [row] = rows_of(rolled_up(events_of(spark, events), "10s"))
    assert (row["stalled"], row["failed"], row["ended"], row["errors"]) == (1, 1, 1, 1)
    assert (row["run_count"], row["run_sum_ms"]) == (1, 40)


def test_a_job_that_expired_is_a_dead_letter_and_no_attempt(spark: SparkSession) -> None:
    events = [event("failed", detail="expired", start=0)]
    [row] = rows_of(rolled_up(events_of(spark, events), "10s"))
    assert (row["failed"], row["ended"], row["error_rate"], row["avg_ms"]) == (1, 0, None, None)
    assert (row["p99_ms"], row["run_histogram"]) == (None, {})


def test_buckets_begin_at_whole_widths_of_utc(spark: SparkSession) -> None:
    # Of the hour that New York has twice.
    late = datetime(2026, 11, 1, 6, 59, 59, 999_000, tzinfo=UTC)
    events = events_of(spark, [event("queued", at=late), event("queued", at=AT)])
    for width, begin in (("10s", late.replace(second=50)), ("1min", late.replace(second=0))):
        [_, row] = rows_of(rolled_up(events, width))
        assert row["bucket"].astimezone(UTC) == begin.replace(microsecond=0)
    hours = [row["bucket"].astimezone(UTC) for row in rows_of(rolled_up(events, "1h"))]
    assert hours == [at.replace(minute=0, second=0, microsecond=0) for at in (AT, late)]


def test_wider_buckets_are_the_same_as_if_counted_directly(spark: SparkSession) -> None:
    draw = random.Random(1)
    kinds = ("queued", "active", "completed", "completed", "retrying", "failed", "stalled")
    events = [
        event(
            draw.choice(kinds),
            at=AT + timedelta(seconds=draw.expovariate(1 / 2000)),
            task=draw.choice(["mail", "charge", "index"]),
            queue=draw.choice(["a", "b"]),
            start=1,
            run_ms=int(draw.lognormvariate(4, 2)),
            wait_ms=draw.randrange(50),
        )
        for _ in range(3000)
    ]
    frame = events_of(spark, events).cache()
    minutes = merged(rolled_up(frame, "10s"), "1min").cache()
    assert rows_of(minutes) == rows_of(rolled_up(frame, "1min"))
    hours = rows_of(merged(minutes, "1h"))
    assert hours == rows_of(rolled_up(frame, "1h"))
    assert sum(row["completed"] for row in hours) == frame.where("kind = 'completed'").count()


def test_counts_percentiles_and_rates_are_those_of_the_events(spark: SparkSession) -> None:
    draw = random.Random(2)
    events = [
        event(
            draw.choices(["completed", "retrying"], [9, 1])[0],
            at=AT + timedelta(seconds=draw.uniform(0, 119)),
            task=draw.choice(["mail", "charge"]),
            start=1,
            run_ms=int(draw.paretovariate(0.7) * 5),
        )
        for _ in range(4000)
    ]
    frame = events_of(spark, events).cache()
    minute = F.timestamp_seconds(F.floor(F.unix_seconds("at") / 60) * 60).alias("bucket")
    exact = frame.groupBy("task", minute).agg(
        F.count("*").alias("ended"),
        F.avg("run_ms").alias("avg"),
        F.avg((F.col("kind") == "retrying").cast("int")).alias("rate"),
        *(
            F.expr(f"percentile_disc({share}) WITHIN GROUP (ORDER BY run_ms)").alias(name)
            for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
        ),
    )
    found = rows_of(rolled_up(frame, "1min"))
    wanted = exact.orderBy("task", "bucket").collect()
    assert len(found) == len(wanted) == 4
    for row, true in zip(found, wanted, strict=True):
        assert (row["task"], row["bucket"], row["ended"]) == (
            true["task"],
            true["bucket"],
            true["ended"],
        )
        assert row["avg_ms"] == pytest.approx(true["avg"], rel=1e-12)
        assert row["error_rate"] == pytest.approx(true["rate"], rel=1e-12)
        for name in ("p50", "p95", "p99"):
            assert row[f"{name}_ms"] == pytest.approx(true[name], rel=0.01)

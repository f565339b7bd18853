"""A task has drifted when it is slower than it used to be, and there is enough to say so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from headrace.errors import InvalidOption
from headrace.spark.pipeline import baseline, rollup
from headrace.spark.pipeline.baseline import drift
from headrace.spark.pipeline.buckets import rolled_up
from tests.spark.support.archives import AT, add_run, event, events_of

pytestmark = pytest.mark.usefixtures("compiled")

HOUR = timedelta(hours=1)
LAST = AT.replace(minute=0)


def ran(task: str, *, hours_ago: int, ms: int, times: int = 20) -> Iterator[Mapping[str, Any]]:
    at = LAST - hours_ago * HOUR
    for _ in range(times):
        yield event("completed", at=at, task=task, start=1, run_ms=ms)


EVENTS = [
    *ran("slower", hours_ago=1, ms=100),
    *ran("slower", hours_ago=0, ms=200),
    *ran("slow for long", hours_ago=30, ms=200),
    *ran("slow for long", hours_ago=0, ms=200),
    *ran("faster", hours_ago=2, ms=200),
    *ran("faster", hours_ago=0, ms=100),
    *ran("new", hours_ago=0, ms=5000),
    *ran("gone", hours_ago=3, ms=10),
    *ran("rare now", hours_ago=1, ms=100),
    *ran("rare now", hours_ago=0, ms=900, times=9),
    *ran("rare before", hours_ago=1, ms=100, times=9),
    *ran("rare before", hours_ago=0, ms=900),
    *ran("too short to tell", hours_ago=1, ms=0),
    *ran("too short to tell", hours_ago=0, ms=1),
    *ran("no time before", hours_ago=1, ms=0),
    *ran("no time before", hours_ago=0, ms=9),
    *ran("two of many", hours_ago=1, ms=100),
    *ran("two of many", hours_ago=0, ms=100),
    *ran("two of many", hours_ago=0, ms=900, times=2),
    *ran("long ago", hours_ago=24 * 8, ms=1),
    *ran("long ago", hours_ago=0, ms=100),
]


def test_a_task_has_drifted_when_it_is_slower_and_there_is_enough_to_say_so(
    spark: SparkSession,
) -> None:
    hourly = rolled_up(events_of(spark, EVENTS), "1h")
    rows = drift(hourly, days=7, hours=1, factor=1.5, least=10).collect()
    found: dict[str, Row] = {row["task"]: row for row in rows}
    assert set(found) == {told["task"] for told in EVENTS}
    assert [row["task"] for row in rows if row["is_drift"]] == ["slower", "no time before"]
    slower = found["slower"]
    assert slower["baseline_p99_ms"] == pytest.approx(100, rel=0.01)
    assert slower["recent_p99_ms"] == pytest.approx(200, rel=0.01)
    assert slower["ratio"] == pytest.approx(2, rel=0.02)
    assert (slower["count"], slower["baseline_count"], slower["slower"]) == (20, 20, 20)
    two = found["two of many"]
    assert (two["recent_p99_ms"] > 800, two["slower"], two["is_drift"]) == (True, 2, False)
    assert (found["new"]["baseline_p99_ms"], found["new"]["ratio"]) == (None, None)
    assert (found["gone"]["recent_p99_ms"], found["gone"]["count"]) == (None, 0)
    assert found["long ago"]["baseline_count"] == 0


def test_how_much_is_recent_and_a_drift_can_be_said(spark: SparkSession) -> None:
    hourly = rolled_up(events_of(spark, EVENTS), "1h")
    wide = drift(hourly, days=30, hours=2, factor=1.5, least=10).where("is_drift").collect()
    assert [row["task"] for row in wide] == ["long ago"]
    high = drift(hourly, days=7, hours=1, factor=2.5, least=5).where("is_drift").collect()
    assert [row["task"] for row in high] == ["rare before", "rare now", "no time before"]


@pytest.mark.slow
def test_it_stands_on_the_hourly_roll_ups_of_an_archive(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert baseline(spark, tmp_path).collect() == []
    end = event("queued", at=LAST + HOUR)
    add_run(events_of(spark, [*EVENTS, end]), tmp_path, run=1)
    rollup(spark, tmp_path)
    found = baseline(spark, tmp_path, least=20).where("is_drift").collect()
    assert [row["task"] for row in found] == ["slower", "no time before"]
    assert baseline(spark, tmp_path, tenant="other").collect() == []


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"factor": 1.0}, r"factor=1\.0 is not valid: use a number above 1"),
        ({"factor": "2"}, "factor='2' is not valid"),
        ({"days": 0}, "days=0 is out of bounds"),
        ({"hours": 9000}, "hours=9000 is out of bounds"),
        ({"least": 0}, "least=0 is out of bounds"),
        ({"tenant": "a/b"}, "tenant 'a/b' is not valid"),
    ],
)
def test_what_is_asked_for_is_checked_first(
    spark: SparkSession, asked: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidOption, match=told):
        baseline(spark, "anywhere", **asked)

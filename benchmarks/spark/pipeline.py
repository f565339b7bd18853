"""How many archived events a second are rolled up and searched, and how exact roll-ups are."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from benchmarks.growth.points import Values
from benchmarks.harness import Goal
from benchmarks.spark.parts import Part
from benchmarks.spark.stand import CORES, Stand
from headrace.spark import pipeline
from headrace.spark.pipeline import events, layout, rollup, rollups, runs
from headrace.spark.pipeline.runs import Reached, RunDone, RunPlan
from headrace.spark.places import EventOffset

EVENTS_A_ROW = 4
"""Two million for 500,000 rows."""
BEGIN = datetime(2026, 1, 31, 10, tzinfo=UTC)
SPAN_MS = 2 * 3_600_000
TENANT, QUEUES = "default", ("queue-0", "queue-1")
TASKS = 20
TYPICAL_MS = (5, 20, 300, 4_000)
"""What attempts of a task take, half of them."""
SPREAD = 0.8
"""The standard deviation of the logarithm of that."""
FAILING = 50
"""One in so many attempts."""
BUCKETS, MEAN, WORST = "buckets", "mean error, %", "worst error, %"
_KEY = ("queue", "task", "bucket")


def fill(stand: Stand) -> None:
    """Write an archive of events of two hours, unless it is there: attempts start and end."""
    if Path(_root(stand)).exists():
        return
    columns = {**dict.fromkeys(layout.event_schema().names, F.lit(None)), **_event(stand)}
    kinds = {field.name: field.dataType for field in layout.event_schema()}
    rows = stand.spark.range(0, _events(stand), 1, CORES).select(
        *(column.cast(kinds[name]).alias(name) for name, column in columns.items())
    )
    path = layout.path_of(_root(stand), layout.EVENTS)
    archived = layout.with_partitions(rows, "at", run=1).write.mode("overwrite")
    archived.partitionBy(*layout.PARTITIONS).parquet(path)
    end = Reached(events=EventOffset(f"{int(BEGIN.timestamp() * 1000) + SPAN_MS}-0"))
    plan = RunPlan(run=1, first=1, lost=0, parts=[], reached=dict.fromkeys(QUEUES, end))
    for said in (plan, RunDone(1)):
        runs.write(stand.spark, _root(stand), TENANT, said)


def _event(stand: Stand) -> dict[str, Column]:
    """Return the columns of an event that tell anything here."""
    number = F.col("id")
    attempt = F.floor(number / 2)
    is_end, is_failed = number % 2 == 1, attempt % FAILING == 0
    task = attempt % TASKS
    typical_ms = F.element_at(
        F.array(*map(F.lit, TYPICAL_MS)), (task % len(TYPICAL_MS) + 1).cast("int")
    )
    at_ms = int(BEGIN.timestamp() * 1000) + F.floor(number * SPAN_MS / _events(stand))
    end = F.when(is_failed, "failed").otherwise("completed")
    return {
        "tenant": F.lit(TENANT),
        "queue": F.element_at(F.array(*map(F.lit, QUEUES)), (task % 2 + 1).cast("int")),
        "number": number,
        "stream_id": F.concat(at_ms.cast("string"), F.lit("-0")),
        "at": F.timestamp_millis(at_ms),
        "kind": F.when(is_end, end).otherwise("active"),
        "job_id": F.concat(F.lit("job-"), attempt.cast("string")),
        "task": F.concat(F.lit("task-"), task.cast("string")),
        "start": F.lit(1),
        "wait_ms": F.when(~is_end, F.round(F.rand(1) * 100)),
        "run_ms": F.when(is_end, F.ceil(typical_ms * F.exp(SPREAD * F.randn(2)))),
        "detail": F.when(is_end & is_failed, "exhausted"),
        "error": F.when(is_end & is_failed, "ValueError"),
        "message": F.when(is_end & is_failed, F.concat(F.lit("no address in order "), number)),
    }


def roll_up(stand: Stand) -> Values:
    """Roll all events up anew, in all widths."""

    def run() -> None:
        assert rollup(stand.spark, _root(stand), since=BEGIN).rows

    return stand.measured(_events(stand), run)


def fill_and_roll_up(stand: Stand) -> None:
    """Make sure that there are roll-ups."""
    fill(stand)
    rollup(stand.spark, _root(stand))


def find(name: str, stand: Stand) -> Values:
    """Compute what a function of the pipeline finds in the archive."""
    found: DataFrame = getattr(pipeline, name)(stand.spark, _root(stand))

    def run() -> None:
        assert found.collect()

    return stand.measured(_events(stand), run)


def compare(width: str, stand: Stand) -> Values:
    """Hold the p99 of each bucket against that of the milliseconds in it."""
    width_ms = 1000 * layout.WIDTHS_S[width]
    at_ms = F.unix_millis("at")
    exact = (
        events(stand.spark, _root(stand))
        .withColumn("bucket", F.timestamp_millis(at_ms - at_ms % width_ms))
        .groupBy(*_KEY)
        .agg(F.expr("percentile_disc(0.99) WITHIN GROUP (ORDER BY run_ms)").alias("exact_ms"))
    )
    error = 100 * F.abs(F.col("p99_ms") / F.col("exact_ms") - 1)
    both = rollups(stand.spark, _root(stand), width).join(exact, list(_KEY))
    found = both.agg(F.count(error), F.avg(error), F.max(error)).first()
    return dict(zip((BUCKETS, MEAN, WORST), map(float, found), strict=True))


def _events(stand: Stand) -> int:
    return EVENTS_A_ROW * stand.rows


def _root(stand: Stand) -> str:
    return str(stand.directory / "rolled-up")


PART = Part(
    "Pipeline: archived events a second",
    {
        ("roll-up of 10 s, 1 min and 1 h", 0): roll_up,
        ("failures", 0): partial(find, "failures"),
        ("baseline", 0): partial(find, "baseline"),
    },
    prepare=fill,
    rounds=1,
)
ACCURACY = Part(
    "The p99 of roll-ups beside that of the stored milliseconds",
    {(f"buckets of {width}", 0): partial(compare, width) for width in layout.WIDTHS_S},
    goals={(f"buckets of {width}", 0): Goal(1.0) for width in layout.WIDTHS_S},
    prepare=fill_and_roll_up,
    main=WORST,
    rounds=1,
)

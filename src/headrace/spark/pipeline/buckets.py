"""What happened in each bucket of time, counted from events; wider buckets from narrower ones.

All is done by expressions of Spark: the Python of executors is not asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from headrace.events import JobEventKind
from headrace.job import FailReason
from headrace.spark.pipeline import histogram, layout

_KEY = ("tenant", "queue", "task", "bucket")
_COUNTS = (
    "started",
    "completed",
    "failed",
    "retried",
    "cancelled",
    "stalled",
    "queued",
    "ended",
    "errors",
    "run_sum_ms",
    "run_count",
)
_TIMES = {"run_bucket": "run_histogram", "wait_bucket": "wait_histogram"}
_KINDS = (
    JobEventKind.QUEUED,
    JobEventKind.SCHEDULED,
    JobEventKind.ACTIVE,
    JobEventKind.RETRYING,
    JobEventKind.COMPLETED,
    JobEventKind.FAILED,
    JobEventKind.CANCELLED,
    JobEventKind.STALLED,
)
_DUE = "due"


def rolled_up(events: DataFrame, width: str) -> DataFrame:
    """Return a row for each tenant, queue, task and bucket in which something happened.

    An attempt has ended where it completed, or with an error: a retry, a death of what ran it, a
    dead letter. ``error_rate`` is the share of the latter. Run times are those of ended attempts.
    A job is counted as queued when it comes, or comes back from the dead letters, not when it falls
    due.

    Args:
        events: as `headrace.spark.pipeline.events` gives them.
        width: of a bucket: ``10s``, ``1min`` or ``1h``.
    """
    known = events.where(F.col("kind").isin([kind.value for kind in _KINDS]))
    told = known.select("*", *(is_so.alias(name) for name, is_so in _transitions().items()))
    run_ms = F.when(F.col("ended"), F.col("run_ms"))
    wait_ms = F.when(F.col("started"), F.col("wait_ms"))
    counts = {name: F.col(name).cast("long") for name in _transitions()}
    parts = told.select(
        *_key(width, "at"),
        F.struct(
            *(count.alias(name) for name, count in counts.items()),
            run_ms.alias("run_sum_ms"),
            run_ms.isNotNull().cast("long").alias("run_count"),
        ).alias("counts"),
        histogram.bucket_of(run_ms).alias("run_bucket"),
        histogram.bucket_of(wait_ms).alias("wait_bucket"),
        F.lit(1).cast("long").alias("times"),
    )
    return _gathered(parts, width)


def merged(rollups: DataFrame, width: str) -> DataFrame:
    """Return roll-ups of wider buckets: the same as if the events had been counted in these.

    Args:
        rollups: of one width, as `headrace.spark.pipeline.rollups` gives them.
        width: of a bucket, ``10s``, ``1min`` or ``1h``: not under that of ``rollups``.
    """
    counts = F.struct(*_COUNTS)
    nothing = F.lit(None).cast(_counts_type())
    no_bucket, none = F.lit(None).cast("int"), F.lit(0).cast("long")

    def part(counts: Column, run: Column, wait: Column, times: Column) -> Column:
        return F.struct(
            counts.alias("counts"),
            run.alias("run_bucket"),
            wait.alias("wait_bucket"),
            times.alias("times"),
        )

    parts = F.concat(
        F.array(part(counts, no_bucket, no_bucket, none)),
        F.transform(
            F.map_entries("run_histogram"),
            lambda entry: part(nothing, entry["key"], no_bucket, entry["value"]),
        ),
        F.transform(
            F.map_entries("wait_histogram"),
            lambda entry: part(nothing, no_bucket, entry["key"], entry["value"]),
        ),
    )
    exploded = rollups.select(*_key(width, "bucket"), F.explode(parts).alias("part"))
    return _gathered(exploded.select(*_KEY, "part.*"), width)


def _transitions() -> Mapping[str, Column]:
    """Return what is counted of an event, and whether it is that."""
    kind, start, detail = (F.col(name) for name in ("kind", "start", "detail"))
    detail = F.coalesce(detail, F.lit(""))
    is_failed = kind == JobEventKind.FAILED.value
    is_completed = kind == JobEventKind.COMPLETED.value
    # A job that has expired was never started, and a death has an event of its own before the end.
    is_attempt = is_failed & (start > 0) & (detail != FailReason.STALLED.value)
    is_error = is_attempt | kind.isin(JobEventKind.RETRYING.value, JobEventKind.STALLED.value)
    is_new = (kind == JobEventKind.QUEUED.value) & (detail != _DUE)
    return {
        "started": kind == JobEventKind.ACTIVE.value,
        "completed": is_completed,
        "failed": is_failed,
        "retried": kind == JobEventKind.RETRYING.value,
        "cancelled": kind == JobEventKind.CANCELLED.value,
        "stalled": kind == JobEventKind.STALLED.value,
        "queued": is_new | (kind == JobEventKind.SCHEDULED.value),
        "ended": is_completed | is_error,
        "errors": is_error,
    }


def _counts_type() -> StructType:
    return StructType([StructField(name, LongType()) for name in _COUNTS])


def _key(width: str, instant: str) -> Sequence[Column]:
    micros, width_us = F.unix_micros(instant), F.lit(layout.WIDTHS_S[width] * 1_000_000)
    bucket = F.timestamp_micros(micros - F.pmod(micros, width_us))
    return (*(F.col(name) for name in _KEY[:-1]), bucket.alias("bucket"))


def _gathered(parts: DataFrame, width: str) -> DataFrame:
    """Add up parts: counts, and how many times fell into one bucket of a histogram."""
    sums = [F.coalesce(F.sum(F.col(f"counts.{name}")), F.lit(0)).alias(name) for name in _COUNTS]
    again = [F.sum(name).alias(name) for name in _COUNTS]
    histograms = [
        histogram.collected(F.col(bucket), F.col("times")).alias(name)
        for bucket, name in _TIMES.items()
    ]
    # A part has one bucket at most, so that each pair of them is there once in the end.
    counted = parts.groupBy(*_KEY, *_TIMES).agg(*sums, F.sum("times").alias("times"))
    whole = counted.groupBy(*_KEY).agg(*again, *histograms)
    derived = {
        "width": F.lit(width),
        "error_rate": F.when(F.col("ended") > 0, F.col("errors") / F.col("ended")),
        "avg_ms": F.when(F.col("run_count") > 0, F.col("run_sum_ms") / F.col("run_count")),
        **{
            f"{prefix}p{percent}_ms": histogram.percentile_ms(F.col(column), percent / 100)
            for prefix, column, percent in (
                ("", "run_histogram", 50),
                ("", "run_histogram", 95),
                ("", "run_histogram", 99),
                ("wait_", "wait_histogram", 95),
            )
        },
    }
    names = [name for name in layout.rollup_schema().names if name not in {"date", "hour"}]
    return whole.withColumns(derived).select(*names)

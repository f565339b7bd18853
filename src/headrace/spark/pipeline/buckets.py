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
_NEXT = "next"


def rolled_up(events: DataFrame, width: str) -> DataFrame:
    """Return a row for each tenant, queue, task and bucket in which something happened.

    An attempt has ended where it completed, or with an error: a retry, a death of what ran it, a
    dead letter. ``error_rate`` is the share of the latter. Run times are those of ended attempts.
    A job is counted as queued when it comes, or comes back from the dead letters, not when it falls
    due. One that is blocked by the active one of its id comes when that has ended, and is counted
    as nothing before.

    Args:
        events: as `headrace.spark.pipeline.events` gives them.
        width: of a bucket: ``10s``, ``1min`` or ``1h``.
    """
    known = events.where(F.col("kind").isin([kind.value for kind in _KINDS]))
    told = known.select("*", *(is_so.alias(name) for name, is_so in _transitions().items()))
    run_ms = F.when(F.col("ended"), F.col("run_ms"))
    wait_ms = F.when(F.col("started"), F.col("wait_ms"))
    counts = F.struct(
        *(F.col(name).cast("long").alias(name) for name in _transitions()),
        run_ms.alias("run_sum_ms"),
        run_ms.isNotNull().cast("long").alias("run_count"),
    )
    parts = told.select(
        *_KEY[:-1],
        bucket_at("at", layout.WIDTHS_S[width]).alias("bucket"),
        counts.alias("counts"),
        histogram.bucket_of(run_ms).alias("run_bucket"),
        histogram.bucket_of(wait_ms).alias("wait_bucket"),
        F.lit(1).cast("long").alias("times"),
    )
    return _of_width(_added_up(parts, _KEY), width)


def merged(rollups: DataFrame, width: str) -> DataFrame:
    """Return roll-ups of wider buckets: the same as if the events had been counted in these.

    Args:
        rollups: of one width, as `headrace.spark.pipeline.rollups` gives them.
        width: of a bucket, ``10s``, ``1min`` or ``1h``: not under that of ``rollups``.
    """
    wider = rollups.withColumn("bucket", bucket_at("bucket", layout.WIDTHS_S[width]))
    return _of_width(summed(wider, *_KEY), width)


def summed(rollups: DataFrame, *by: str) -> DataFrame:
    """Return one row for each group of roll-ups, with the counts, rates and times of all of it.

    Args:
        rollups: each bucket in one width alone.
        *by: columns that make a group.
    """
    nothing = F.lit(None).cast(StructType([StructField(name, LongType()) for name in _COUNTS]))
    no_bucket, never = F.lit(None).cast("int"), F.lit(0).cast("long")

    def part(counts: Column, run: Column, wait: Column, times: Column) -> Column:
        named = {"counts": counts, "run_bucket": run, "wait_bucket": wait, "times": times}
        return F.struct(*(value.alias(name) for name, value in named.items()))

    parts = F.concat(
        F.array(part(F.struct(*_COUNTS), no_bucket, no_bucket, never)),
        F.transform(
            F.map_entries("run_histogram"),
            lambda entry: part(nothing, entry["key"], no_bucket, entry["value"]),
        ),
        F.transform(
            F.map_entries("wait_histogram"),
            lambda entry: part(nothing, no_bucket, entry["key"], entry["value"]),
        ),
    )
    return _added_up(rollups.select(*by, F.explode(parts).alias("part")).select(*by, "part.*"), by)


def bucket_at(instant: str, width_s: int) -> Column:
    """Return when the bucket of an instant begins; all widths begin with an hour of UTC."""
    micros = F.unix_micros(instant)
    return F.timestamp_micros(micros - F.pmod(micros, F.lit(width_s * 1_000_000)))


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
        "cancelled": (kind == JobEventKind.CANCELLED.value) & (detail != _NEXT),
        "stalled": kind == JobEventKind.STALLED.value,
        "queued": is_new | (kind == JobEventKind.SCHEDULED.value),
        "ended": is_completed | is_error,
        "errors": is_error,
    }


def _added_up(parts: DataFrame, by: Sequence[str]) -> DataFrame:
    """Add up parts: counts, and how many times fell into one bucket of a histogram."""
    sums = [F.coalesce(F.sum(F.col(f"counts.{name}")), F.lit(0)).alias(name) for name in _COUNTS]
    again = [F.sum(name).alias(name) for name in _COUNTS]
    histograms = [
        histogram.collected(F.col(bucket), F.col("times")).alias(name)
        for bucket, name in _TIMES.items()
    ]
    # A part has one bucket at most, so that each pair of them is there once in the end.
    counted = parts.groupBy(*by, *_TIMES).agg(*sums, F.sum("times").alias("times"))
    return counted.groupBy(*by).agg(*again, *histograms).withColumns(_rates())


def _rates() -> Mapping[str, Column]:
    """Return what is worked out from counts and histograms."""
    run, wait = F.col("run_histogram"), F.col("wait_histogram")
    return {
        "error_rate": F.when(F.col("ended") > 0, F.col("errors") / F.col("ended")),
        "avg_ms": F.when(F.col("run_count") > 0, F.col("run_sum_ms") / F.col("run_count")),
        "p50_ms": histogram.percentile_ms(run, 0.5),
        "p95_ms": histogram.percentile_ms(run, 0.95),
        "p99_ms": histogram.percentile_ms(run, 0.99),
        "wait_p95_ms": histogram.percentile_ms(wait, 0.95),
    }


def _of_width(rollups: DataFrame, width: str) -> DataFrame:
    names = [name for name in layout.rollup_schema().names if name not in {"date", "hour"}]
    return rollups.withColumn("width", F.lit(width)).select(*names)

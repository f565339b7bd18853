"""How long the attempts of a task usually take, and whether that has drifted."""

from __future__ import annotations

import os

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace.errors import InvalidOption
from headrace.plain import shown
from headrace.settings import check_count
from headrace.spark.pipeline import histogram, layout
from headrace.spark.pipeline.buckets import summed

MOST_DAYS = 3660
MOST_HOURS = 24 * 366
_MOST_COUNT = 10**12
_HOUR_S = 3600
_RESOLUTION_MS = histogram.RATIO
"""So much more may be no difference: times are stored in whole milliseconds, in a bucket each."""

_LEAST_SLOWER = 5
"""The 99th percentile of a hundred attempts is the last but one: two that were slow are chance."""

_TASK = ("tenant", "queue", "task")


def baseline(
    spark: SparkSession,
    root: str | os.PathLike[str],
    *,
    days: int = 7,
    hours: int = 1,
    factor: float = 1.5,
    least: int = 100,
    tenant: str | None = None,
) -> DataFrame:
    """Return each task's usual 99th percentile beside that of the last hours, drifted ones first.

    See `drift`; it stands on the roll-ups of an hour.

    Args:
        spark: a session.
        root: where the archive is: a path or URI that Spark knows.
        days: how far back goes what is usual, 1 to 3,660.
        hours: how many are recent: the last that are rolled up, 1 to 8,784.
        factor: how many times as long as usual is a drift, above 1.
        least: how many attempts there have to be, both usual and recent, 1 or more.
        tenant: whose tasks; None: those of all.

    Raises:
        InvalidOption: an argument is out of bounds, or no name.
    """
    if not (isinstance(factor, float | int) and 1 < factor < float("inf")):
        raise InvalidOption(f"factor={shown(factor)} is not valid: use a number above 1, as 1.5")
    check_count(days, name="days", most=MOST_DAYS)
    check_count(hours, name="hours", most=MOST_HOURS)
    check_count(least, name="least", most=_MOST_COUNT)
    hourly = layout.read_known(
        spark, layout.path_of(root, layout.ROLLUP, "width=1h"), layout.rollup_schema()
    )
    hourly = layout.of_tenant(hourly, tenant)
    return drift(hourly, days=days, hours=hours, factor=factor, least=least)


def drift(hourly: DataFrame, *, days: int, hours: int, factor: float, least: int) -> DataFrame:
    """Compare the last hours of each task with the days before them.

    The last hour is that of the tenant, so that a task which has nothing in it has not drifted.
    Neither has one with too few attempts or without a history, nor one of which fewer than five
    attempts were slower than that, nor one that is slower by no more than the millisecond that
    times are stored to.

    Args:
        hourly: roll-ups of an hour.
        days: how many before the recent hours are usual.
        hours: how many are recent.
        factor: how many times as long as usual is a drift.
        least: how many attempts there have to be, both usual and recent.

    Returns:
        ``tenant``, ``queue``, ``task``, ``baseline_p99_ms``, ``recent_p99_ms``, their ``ratio``,
        ``count`` of recent attempts, ``baseline_count``, ``slower``: how many recent ones took
        longer than a drift asks for; and ``is_drift``.
    """
    last = hourly.groupBy("tenant").agg(F.max("bucket").alias("last"))
    age_h = (F.unix_seconds("last") - F.unix_seconds("bucket")) / _HOUR_S
    aged = hourly.join(F.broadcast(last), "tenant").withColumn("age_h", age_h)
    known = aged.where(F.col("age_h") < days * 24 + hours)
    sums = summed(known.withColumn("is_recent", F.col("age_h") < hours), *_TASK, "is_recent")
    sides = {"recent": F.col("is_recent"), "baseline": ~F.col("is_recent")}
    compared = sums.groupBy(*_TASK).agg(
        *(
            F.any_value(F.when(is_so, F.col(name)), ignoreNulls=True).alias(f"{side}_{name}")
            for side, is_so in sides.items()
            for name in ("p99_ms", "run_count", "run_histogram")
        )
    )
    usual_ms, recent_ms = F.col("baseline_p99_ms"), F.col("recent_p99_ms")
    counts = {
        name: F.coalesce(F.col(f"{side}_run_count"), F.lit(0))
        for side, name in (("recent", "count"), ("baseline", "baseline_count"))
    }
    bound_ms = usual_ms * factor + _RESOLUTION_MS
    slower = histogram.count_over(F.col("recent_run_histogram"), bound_ms)
    is_slower = (recent_ms > bound_ms) & (slower >= _LEAST_SLOWER)
    is_enough = F.least(*counts.values()) >= least
    found = compared.select(
        *_TASK,
        usual_ms,
        recent_ms,
        F.when(usual_ms > 0, recent_ms / usual_ms).alias("ratio"),
        *(count.alias(name) for name, count in counts.items()),
        slower.alias("slower"),
        (F.coalesce(is_slower, F.lit(False)) & is_enough).alias("is_drift"),  # noqa: FBT003
    )
    return found.orderBy(F.desc("is_drift"), F.desc("ratio"), *_TASK)

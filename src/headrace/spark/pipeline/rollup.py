"""Roll-ups of ten seconds, a minute and an hour, kept up with the archive.

A bucket is written once it is final: the events of a queue never go back in time, so nothing of it
can come any more when the archive has gone past its end in every queue.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import reduce
from itertools import chain

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from headrace.clock import datetime_of, instant_ms
from headrace.job import check_name
from headrace.spark.pipeline import layout
from headrace.spark.pipeline.buckets import merged, rolled_up

_ROLLED = "rolled"
"""The folder of what was rolled up already."""

_HOUR_MS = 3_600_000
_FINER = {"1min": "10s", "1h": "1min"}
"""Of which buckets wider ones are made."""

_FOLDER = re.compile(r"/tenant=([^/]+)/(date=[^/]+/hour=[^/]+)/run=([0-9]+)/[^/]+$")


class RollupReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a roll-up has brought up to date.

    Attributes:
        partitions: hours that were made anew, once for each width.
        rows: in them.
        final_until: buckets that end no later are final, of every tenant; None where nothing is
            archived.
    """

    partitions: int
    rows: int
    final_until: datetime | None


class _Reach(msgspec.Struct, frozen=True):
    """The last run of a tenant's archive, and until when all of its queues are archived."""

    run: int
    until_ms: int


_NOTHING = _Reach(run=-1, until_ms=0)


def rollup(
    spark: SparkSession,
    root: str | os.PathLike[str],
    *,
    tenant: str | None = None,
    since: datetime | None = None,
) -> RollupReport:
    """Bring the roll-ups of an archive up to date.

    Reads the hours that were added to or have become final since the last time, and writes each of
    them whole. It may be run at any time, again, and after a crash at any point: the result is the
    same. An archive takes one at a time.

    Args:
        spark: a session.
        root: where the archive is: a path or URI that Spark knows.
        tenant: whose; None: all.
        since: make what happened since then anew; None: only what has changed.

    Raises:
        InvalidOption: ``root`` is empty, ``tenant`` is no name, or ``since`` has no time zone.
    """
    since_ms = None if since is None else instant_ms(since, name="since")
    events = layout.read_known(spark, layout.path_of(root, layout.EVENTS), _event_schema())
    if tenant is not None:
        events = events.where(F.col("tenant") == check_name(tenant, what="tenant"))
    reached = _reached(events)
    if not reached:
        return RollupReport(partitions=0, rows=0, final_until=None)
    rolled = _rolled(spark, root)
    hours = _changed(events, reached, rolled, since_ms)
    partitions, rows = _make(spark, root, events, hours, reached) if hours else (0, 0)
    if any(rolled.get(name) != reach for name, reach in reached.items()):
        _remember(spark, root, reached)
    return RollupReport(
        partitions=partitions,
        rows=rows,
        final_until=datetime_of(min(reach.until_ms for reach in reached.values())),
    )


def _event_schema() -> StructType:
    return StructType([*layout.event_schema(), StructField("run", LongType())])


def _reach_schema() -> StructType:
    columns = {"run": LongType(), "until_ms": LongType(), "tenant": StringType()}
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def _reached(events: DataFrame) -> dict[str, _Reach]:
    """Return how far the archive of each tenant has come."""
    latest = F.unix_millis(F.max("at")).alias("until_ms")
    queues = events.groupBy("tenant", "queue").agg(latest, F.max("run").alias("run"))
    found = queues.groupBy("tenant").agg(F.max("run"), F.min("until_ms")).collect()
    return {tenant: _Reach(run, until_ms) for tenant, run, until_ms in found}


def _rolled(spark: SparkSession, root: str | os.PathLike[str]) -> dict[str, _Reach]:
    """Return how far each tenant's archive had come when it was rolled up last."""
    found = layout.read_known(spark, layout.path_of(root, _ROLLED), _reach_schema()).collect()
    return {tenant: _Reach(run, until_ms) for run, until_ms, tenant in found}


def _remember(
    spark: SparkSession, root: str | os.PathLike[str], reached: Mapping[str, _Reach]
) -> None:
    """Write down what is rolled up. If that is lost, more is made anew than has to be."""
    rows = [(reach.run, reach.until_ms, tenant) for tenant, reach in reached.items()]
    frame = spark.createDataFrame(rows, _reach_schema())
    _overwrite(frame.coalesce(1), layout.path_of(root, _ROLLED), "tenant")


def _changed(
    events: DataFrame,
    reached: Mapping[str, _Reach],
    rolled: Mapping[str, _Reach],
    since_ms: int | None,
) -> list[str]:
    """Return the hours that have events of new runs, or were not final when last rolled up."""
    since = "" if since_ms is None else _hour_of(since_ms)
    changed = set()
    for folder in filter(None, map(_FOLDER.search, events.inputFiles())):
        tenant, hour, run = folder.groups()
        is_new = tenant in reached and int(run) > rolled.get(tenant, _NOTHING).run
        if is_new or (since and hour >= since):
            changed.add(f"{tenant}/{hour}")
    for tenant, reach in reached.items():
        before = rolled.get(tenant, reach)
        if before != reach:
            hours = range(before.until_ms // _HOUR_MS, reach.until_ms // _HOUR_MS + 1)
            changed |= {f"{tenant}/{_hour_of(nth * _HOUR_MS)}" for nth in hours}
    return sorted(changed)


def _hour_of(ms: int) -> str:
    return f"{datetime_of(ms):date=%Y-%m-%d/hour=%H}"


def _make(
    spark: SparkSession,
    root: str | os.PathLike[str],
    events: DataFrame,
    hours: Sequence[str],
    reached: Mapping[str, _Reach],
) -> tuple[int, int]:
    """Write hours in all widths; return how many partitions and rows they have now."""
    hour = F.concat_ws(
        "/",
        "tenant",
        F.concat(F.lit("date="), F.col("date")),
        F.concat(F.lit("hour="), F.lpad(F.col("hour").cast("string"), 2, "0")),
    )
    is_of = hour.isin(hours)
    untils = [(F.lit(name), F.lit(reach.until_ms)) for name, reach in reached.items()]
    until_ms = F.create_map(*chain.from_iterable(untils))[F.col("tenant")]

    def written(frame: DataFrame, width: str) -> DataFrame:
        folder = layout.path_of(root, layout.ROLLUP, f"width={width}")
        end_ms = F.unix_millis("bucket") + layout.WIDTHS_S[width] * 1000
        _overwrite(_in_hours(frame.where(end_ms <= until_ms)), folder, *layout.PARTITIONS[:3])
        return layout.read_known(spark, folder, layout.rollup_schema()).where(is_of)

    made = {"10s": written(rolled_up(events.where(is_of), "10s"), "10s")}
    for width, finer in _FINER.items():
        made[width] = written(merged(made[finer], width), width)
    named = [
        frame.select(F.lit(width).alias("width"), hour.alias("hour"))
        for width, frame in made.items()
    ]
    sizes = reduce(DataFrame.union, named).groupBy("width", "hour").count().collect()
    return len(sizes), sum(row["count"] for row in sizes)


def _in_hours(frame: DataFrame) -> DataFrame:
    """Return roll-ups in the order of their files, one for each hour."""
    hours = F.floor(F.unix_millis("bucket") / _HOUR_MS).cast("int")
    named = frame.drop("width").withColumns(
        {"date": layout.date_of(hours), "hour": layout.hour_of(hours)}
    )
    partition = layout.PARTITIONS[:3]
    return named.repartition(*partition).sortWithinPartitions(*partition, "queue", "task", "bucket")


def _overwrite(frame: DataFrame, path: str, *partition: str) -> None:
    """Write partitions whole in place of what they were; leave others alone."""
    writer = frame.write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
    writer.partitionBy(*partition).parquet(path)

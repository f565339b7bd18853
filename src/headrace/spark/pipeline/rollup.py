"""Roll-ups of ten seconds, a minute and an hour, kept up with the archive.

A row is written once its bucket is final in its queue: events never go back in time, so nothing of
a bucket can come any more when the archive of the queue has gone past its end.
"""

from __future__ import annotations

import os
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
from headrace.spark.pipeline import layout, runs
from headrace.spark.pipeline.buckets import merged, rolled_up
from headrace.spark.pipeline.locks import Work, held

_HOUR_MS = 3_600_000
_FINER = {"1min": "10s", "1h": "1min"}
"""Of which buckets wider ones are made."""


class RollupReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a roll-up has brought up to date.

    Attributes:
        partitions: hours that were made anew, once for each width.
        rows: in them.
        final_until: buckets that end no later are final in every queue; None where nothing is
            archived.
    """

    partitions: int
    rows: int
    final_until: datetime | None


class _Reach(msgspec.Struct, frozen=True):
    """How far the archive of a tenant has come: its last run, and each queue's instant in ms."""

    run: int = 0
    until_ms: Mapping[str, int] = {}


def rollup(
    spark: SparkSession,
    root: str | os.PathLike[str],
    *,
    tenant: str | None = None,
    since: datetime | None = None,
) -> RollupReport:
    """Bring the roll-ups of an archive up to date.

    Reads the hours that were added to or have become final since the last time, and writes each of
    them whole. It may be run at any time, beside the archiver and a compaction, again, and after a
    crash at any point: the result is the same, or will be by the next time. A tenant's part of an
    archive takes one at a time, and no retention meanwhile; on a disk another one is refused.

    Args:
        spark: a session.
        root: where the archive is: a path or URI that Spark knows.
        tenant: whose; None: all.
        since: make what happened since then anew; None: only what has changed.

    Raises:
        InvalidOption: ``root`` is empty, ``tenant`` is no name, ``since`` has no time zone, or what
            is kept of the archive can't be read.
        ArchiveInUse: another roll-up or a retention is at work there; nothing was changed.
    """
    since_ms = None if since is None else instant_ms(since, name="since")
    if tenant is not None:
        check_name(tenant, what="tenant")
    tenants = [name for name in runs.tenants(spark, root) if tenant in {None, name}]
    with held(spark, root, Work.ROLLUP, tenants=tenants):
        return _brought_up(spark, root, tenants, since_ms)


def _brought_up(
    spark: SparkSession, root: str | os.PathLike[str], tenants: Sequence[str], since_ms: int | None
) -> RollupReport:
    # Before the files are listed: what has been archived until then is among them.
    reached = {name: reach for name in tenants if (reach := _reached(spark, root, name)).until_ms}
    if not reached:
        return RollupReport(partitions=0, rows=0, final_until=None)
    # A compaction hides files of an hour for a moment; one that is killed then, until the next one.
    hidden = _hidden(spark, root)
    events, rolled = _archived(spark, root), _rolled(spark, root)
    files = events.inputFiles()
    hours = [hour for hour in _changed(files, reached, rolled, since_ms) if hour not in hidden]
    partitions, rows = _make(spark, root, events, hours, reached) if hours else (0, 0)
    is_new = any(rolled.get(name) != reach for name, reach in reached.items())
    if is_new and not hidden | _hidden(spark, root):
        now = _archived(spark, root).inputFiles()
        seen = [*hours, *_changed(now, reached, rolled, since_ms)]
        last_runs = {name: reach.run for name, reach in reached.items()}
        if is_unmoved(files, now, seen, last_runs):
            _remember(spark, root, reached)
    untils = chain.from_iterable(reach.until_ms.values() for reach in reached.values())
    return RollupReport(partitions=partitions, rows=rows, final_until=datetime_of(min(untils)))


def is_unmoved(
    before: Sequence[str], now: Sequence[str], hours: Sequence[str], last_runs: Mapping[str, int]
) -> bool:
    """Tell whether hours have the same files now, but for what an archiver has added.

    Args:
        before: the files of events that there were.
        now: those that there are.
        hours: their folders, from ``tenant=`` on.
        last_runs: by tenant, the last run of which all files were there before.
    """
    those = set(hours)

    def settled(files: Sequence[str]) -> set[str]:
        found = filter(None, map(layout.FILE.search, files))
        return {
            file.string
            for file in found
            if file["hour"] in those and int(file["run"]) <= last_runs[file["tenant"]]
        }

    return settled(before) == settled(now)


def _archived(spark: SparkSession, root: str | os.PathLike[str]) -> DataFrame:
    return layout.read_known(spark, layout.path_of(root, layout.EVENTS), layout.event_schema())


def _hidden(spark: SparkSession, root: str | os.PathLike[str]) -> set[str]:
    """Return the hours of which a compaction exchanges the files, or has left them half exchanged.

    Asked before files are listed: one that begins later shows in another list of them.
    """
    folder = layout.path_of(root, layout.COMPACTING, layout.EVENTS)
    path = f"{folder}/tenant=*/date=*/hour=*/{layout.NOTE}"
    notes = layout.if_there(lambda: spark.read.text(path))
    found = [] if notes is None else notes.inputFiles()
    return {note.rpartition(f"/{layout.EVENTS}/")[2].rpartition("/")[0] for note in found}


def _reached(spark: SparkSession, root: str | os.PathLike[str], tenant: str) -> _Reach:
    state = runs.read_state(spark, root, tenant)
    return _Reach(state.last_done, state.until_ms)


def _reach_schema() -> StructType:
    names, numbers = ("queue", "tenant"), ("run", "until_ms")
    return StructType(
        [
            *(StructField(name, LongType()) for name in numbers),
            *(StructField(name, StringType()) for name in names),
        ]
    )


def _rolled(spark: SparkSession, root: str | os.PathLike[str]) -> dict[str, _Reach]:
    """Return how far each tenant's archive had come when it was rolled up last."""
    found: dict[str, _Reach] = {}
    rows = layout.read_known(spark, layout.path_of(root, layout.ROLLED), _reach_schema()).collect()
    for run, until_ms, queue, tenant in rows:
        untils = found.get(tenant, _Reach()).until_ms
        found[tenant] = _Reach(run, {**untils, queue: until_ms})
    return found


def _remember(
    spark: SparkSession, root: str | os.PathLike[str], reached: Mapping[str, _Reach]
) -> None:
    """Write down what is rolled up. If that is lost, more is made anew than has to be."""
    rows = [
        (reach.run, until_ms, queue, tenant)
        for tenant, reach in reached.items()
        for queue, until_ms in reach.until_ms.items()
    ]
    frame = spark.createDataFrame(rows, _reach_schema()).coalesce(1)
    _overwrite(frame, layout.path_of(root, layout.ROLLED), "tenant")


def _changed(
    files: Sequence[str],
    reached: Mapping[str, _Reach],
    rolled: Mapping[str, _Reach],
    since_ms: int | None,
) -> list[str]:
    """Return the hours that have events of new runs, or were not final when last rolled up."""
    changed = set()
    for file in filter(None, map(layout.FILE.search, files)):
        hour, tenant, run = file["hour"], file["tenant"], int(file["run"])
        if tenant in reached:
            before, now = rolled.get(tenant, _Reach()), reached[tenant]
            is_asked = since_ms is not None and hour >= _hour_of(tenant, since_ms)
            if is_asked or run > before.run or _has_become_final(hour, tenant, before, now):
                changed.add(hour)
    return sorted(changed)


def _has_become_final(hour: str, tenant: str, before: _Reach, now: _Reach) -> bool:
    """Tell whether a queue was in an hour, or before it, and has gone on from there."""
    return any(
        _hour_of(tenant, before.until_ms.get(queue, 0)) <= hour <= _hour_of(tenant, until_ms)
        for queue, until_ms in now.until_ms.items()
        if before.until_ms.get(queue, 0) < until_ms
    )


def _hour_of(tenant: str, ms: int) -> str:
    return f"tenant={tenant}/{datetime_of(ms):date=%Y-%m-%d/hour=%H}"


def _make(
    spark: SparkSession,
    root: str | os.PathLike[str],
    events: DataFrame,
    hours: Sequence[str],
    reached: Mapping[str, _Reach],
) -> tuple[int, int]:
    """Write hours in all widths; return how many partitions and rows they have now."""
    hour = F.format_string(
        "tenant=%s/date=%s/hour=%02d", "tenant", F.col("date").cast("string"), "hour"
    )
    is_of = hour.isin(hours)
    untils = {
        f"{tenant}/{queue}": until_ms
        for tenant, reach in reached.items()
        for queue, until_ms in reach.until_ms.items()
    }
    literals = chain.from_iterable((F.lit(key), F.lit(value)) for key, value in untils.items())
    until_ms = F.try_element_at(F.create_map(*literals), F.concat_ws("/", "tenant", "queue"))

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

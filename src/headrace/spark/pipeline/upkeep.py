"""Small files of an archive become one, and old ones go.

Files are never changed where readers look for them. What an hour has is merged beside it, and then
takes the place of what it was made of, by renaming. A note says what is to take whose place, so
that who comes after a kill can bring it to its end.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from operator import attrgetter

import msgspec
from pyspark.sql import SparkSession

from headrace.clock import datetime_of, instant_ms, wall_clock
from headrace.job import check_name
from headrace.settings import check_count
from headrace.spark.pipeline import layout, runs
from headrace.spark.pipeline.files import Files
from headrace.spark.pipeline.locks import Work, held

FILE_BYTES = 256 * 1024 * 1024
"""About how large the files of an hour get that has more than one."""

_MOST_DAYS = 36_500
_LEFT_FOR = timedelta(days=1)
"""How long what a killed run has left is left alone: it may not have been killed."""

_KINDS = {layout.EVENTS: ("queue", "number"), layout.DEAD: ("queue", "ended_at")}
"""The order of the rows in a file."""


class CompactReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a compaction has done.

    Attributes:
        hours: how many hours of events or dead letters were merged.
        files_before: how many files they had.
        files_after: how many they have.
    """

    hours: int
    files_before: int
    files_after: int


class RetainReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a retention has done.

    Attributes:
        partitions: how many days of events or dead letters were deleted, or would be.
    """

    partitions: int


class _File(msgspec.Struct, frozen=True, kw_only=True):
    """A file of an hour: ``hour`` is its folder in the archive."""

    hour: str
    tenant: str
    date: str
    at: int
    run: int
    size: int

    @property
    def until(self) -> datetime:
        """When the hour is over."""
        day = datetime.fromisoformat(self.date).replace(tzinfo=UTC)
        return day + timedelta(hours=self.at + 1)


class _Merge(msgspec.Struct, frozen=True):
    """What merged files take the place of: these runs of an hour. They get the last one's name."""

    hour: str
    runs: list[int]


def compact(
    spark: SparkSession,
    root: str | os.PathLike[str],
    *,
    tenant: str | None = None,
    before: datetime | None = None,
) -> CompactReport:
    """Merge the small files of hours that are over: each gets one file, or some of 256 MiB.

    It may run beside the archiver, and may be killed at any point: the next call brings to its end
    what was cut off. Then each event and dead letter is there once, as before.

    For the moment in which the files of an hour are exchanged, some milliseconds, a reader may find
    none of that hour, or some; after a kill in that very moment, until the next call. A query that
    has begun before may fail since its files are gone: run it again. On object stores renaming is
    slow and not one step: use it where the archive is on HDFS or a disk. A tenant's part of an
    archive takes one compaction or retention at a time; on a disk another one is refused.

    Args:
        spark: a classic session.
        root: where the archive is: a path or URI that Spark knows.
        tenant: whose; None: all.
        before: only hours that were over then; None: now.

    Raises:
        InvalidOption: ``root`` is empty, ``tenant`` is no name, ``before`` has no time zone, the
            session is one of Spark Connect, or what is kept of the archive can't be read.
        ArchiveInUse: another compaction or retention is at work there; nothing was changed.
    """
    files = Files(spark, root)
    until = datetime_of(wall_clock() if before is None else instant_ms(before, name="before"))
    tenants = _tenants(files, tenant)
    hours = count_before = count_after = 0
    with held(spark, root, Work.UPKEEP, tenants=tenants):
        for name in tenants:
            _clear(files, name)
        for kind in _KINDS:
            for found in _mergeable(spark, root, kind, tenants=tenants, until=until):
                parts = -(-sum(one.size for one in found) // FILE_BYTES)
                if len(found) > parts:
                    _merge(spark, root, files, kind, found, parts=parts)
                    hours, count_before = hours + 1, count_before + len(found)
                    count_after += parts
    return CompactReport(hours=hours, files_before=count_before, files_after=count_after)


def retain(
    spark: SparkSession,
    root: str | os.PathLike[str],
    *,
    days: int,
    tenant: str | None = None,
    dry_run: bool = False,
) -> RetainReport:
    """Delete the events and dead letters of whole days that are older; roll-ups stay.

    It may be killed at any point, and run again. A tenant's part of an archive takes it alone, but
    for the archiver: it may not be compacted or rolled up meanwhile, which on a disk is refused.

    Args:
        spark: a classic session.
        root: where the archive is: a path or URI that Spark knows.
        days: how many days before today are kept, by UTC; 1 to 36,500.
        tenant: whose; None: all.
        dry_run: count them and delete nothing.

    Raises:
        InvalidOption: ``root`` is empty, ``days`` is out of bounds, ``tenant`` is no name, or the
            session is one of Spark Connect.
        ArchiveInUse: another compaction, retention or roll-up is at work there; nothing was
            deleted.
    """
    first = datetime.now(UTC).date() - timedelta(
        days=check_count(days, name="days", most=_MOST_DAYS)
    )
    files = Files(spark, root)
    tenants = _tenants(files, tenant)
    found = (path for name in tenants for path in files.found(f"{_of(name)}/date=*"))
    old = [path for path in found if _day(path) < first]
    if not dry_run:
        with held(spark, root, Work.UPKEEP, Work.ROLLUP, tenants=tenants):
            for path in old:
                files.delete(path)
    return RetainReport(partitions=len(old))


def _tenants(files: Files, tenant: str | None) -> list[str]:
    """Return whose events and dead letters there are: of a tenant, None for all."""
    whose = "*" if tenant is None else check_name(tenant, what="tenant")
    return sorted({path.rpartition("tenant=")[2] for path in files.found(_of(whose))})


def _of(tenant: str) -> str:
    """Return the pattern of the folders with the events and dead letters of a tenant."""
    return f"{{{','.join(_KINDS)}}}/tenant={tenant}"


def _day(path: str) -> date:
    return date.fromisoformat(path.rpartition("date=")[2])


def _clear(files: Files, tenant: str) -> None:
    """Bring what was cut off to its end, and delete what was left behind."""
    for work in files.found(f"{layout.COMPACTING}/{_of(tenant)}/date=*/hour=*"):
        if files.exists(f"{work}/{layout.NOTE}"):
            _exchange(
                files, work, msgspec.json.decode(files.read(f"{work}/{layout.NOTE}"), type=_Merge)
            )
        files.delete(work)
    before_ms = wall_clock() - _LEFT_FOR // timedelta(milliseconds=1)
    for folder in (_of(tenant), f"{layout.ROLLUP}/width=*", layout.ROLLED):
        for path in files.older(f"{folder}/.spark-staging-*", before_ms):
            files.delete(path)


def _mergeable(
    spark: SparkSession,
    root: str | os.PathLike[str],
    kind: str,
    *,
    tenants: Sequence[str],
    until: datetime,
) -> Iterator[list[_File]]:
    """Yield the files of each hour that is over, but for those of a run that is not."""
    last_done: dict[str, int] = {}
    for hour in _hours(spark, layout.path_of(root, kind), kind):
        name = hour[0].tenant
        if name in tenants and hour[0].until <= until:
            if name not in last_done:
                last_done[name] = runs.read_state(spark, root, name).last_done
            found = [one for one in hour if one.run <= last_done[name]]
            if found:
                yield found


def _hours(spark: SparkSession, path: str, kind: str) -> list[list[_File]]:
    """Return the files of each hour; Spark lists them faster than one call for each would."""
    reader = spark.read.format("binaryFile").options(
        recursiveFileLookup=True, pathGlobFilter="*.parquet"
    )
    listed = layout.if_there(lambda: reader.load(path).select("path", "length"))
    rows = [] if listed is None else listed.collect()
    found = [one for row in rows for one in _file(kind, row["path"], row["length"])]
    hour_of = attrgetter("hour")
    return [list(files) for _, files in groupby(sorted(found, key=hour_of), key=hour_of)]


def _file(kind: str, path: str, size: int) -> Iterator[_File]:
    """Yield a file of the archive; nothing where it is none."""
    match = layout.FILE.search(path)
    if match is not None:
        yield _File(
            hour=f"{kind}/{match['hour']}",
            tenant=match["tenant"],
            date=match["date"],
            at=int(match["at"]),
            run=int(match["run"]),
            size=size,
        )


def _merge(
    spark: SparkSession,
    root: str | os.PathLike[str],
    files: Files,
    kind: str,
    found: Sequence[_File],
    *,
    parts: int,
) -> None:
    merge = _Merge(found[0].hour, sorted({one.run for one in found}))
    work = f"{layout.COMPACTING}/{merge.hour}"
    files.delete(work)
    sources = [layout.path_of(root, f"{merge.hour}/run={run}") for run in merge.runs]
    reader = spark.read.options(mergeSchema=True, recursiveFileLookup=True)
    rows = reader.parquet(*sources).coalesce(parts).sortWithinPartitions(*_KINDS[kind])
    writer = rows.write.options(**{"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"})
    writer.parquet(layout.path_of(root, work, "merged"))
    files.write(f"{work}/{layout.NOTE}", msgspec.json.encode(merge))
    _exchange(files, work, merge)
    files.delete(work)


def _exchange(files: Files, work: str, merge: _Merge) -> None:
    """Let merged files take the place of what they were made of; it may have been begun before."""
    if not files.exists(f"{work}/merged"):
        return
    for run in merge.runs:
        source = f"{merge.hour}/run={run}"
        if files.exists(source):
            files.rename(source, f"{work}/old/run={run}")
    files.rename(f"{work}/merged", f"{merge.hour}/run={merge.runs[-1]}")

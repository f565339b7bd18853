"""Where things are in the archive, and their columns.

An archive is a folder of Parquet files that any file system of Spark may hold. Days and hours are
those of UTC. Columns that an older release did not write are null, and those of a newer one stay.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import datetime

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headrace.clock import instant_ms
from headrace.errors import InvalidOption
from headrace.job import check_name
from headrace.plain import shown
from headrace.spark.events import spark_schema as event_columns
from headrace.spark.records import spark_schema as dead_letter_columns

EVENTS = "events"
DEAD = "dead"
ROLLUP = "rollup"
RUNS = "runs"
"""Folders of an archive."""

ROLLED = "rolled"
"""The folder of what was rolled up already."""

COMPACTING = "_compacting"
"""The folder of what is merged; readers of Parquet pass over names that begin like this."""

NOTE = "note"
"""The name of what says there that the files of an hour are being exchanged."""

PARTITIONS = ("tenant", "date", "hour", "run")
"""What the folders of events and dead letters are named after, the outermost first."""

FILE = re.compile(
    r"/(?P<hour>tenant=(?P<tenant>[^/]+)/date=(?P<date>[^/]+)/hour=(?P<at>[0-9]+))"
    r"/run=(?P<run>[0-9]+)/[^/]+$"
)
"""The end of the path of a file of events or dead letters."""

ROLLUP_PARTITIONS = ("width", "tenant", "date", "hour")
"""The same of roll-ups."""

WIDTHS_S = {"10s": 10, "1min": 60, "1h": 3600}
"""How many seconds a bucket of a roll-up has, by the name of its width."""

_HOUR_S = 3600
_HOUR_MS = _HOUR_S * 1000
_WHEN = (StructField("date", DateType()), StructField("hour", IntegerType()))

_TEXT, _LONG, _INSTANT = StringType(), LongType(), TimestampType()
_HISTOGRAM = MapType(IntegerType(), LongType())
_ROLLUP = {
    "tenant": _TEXT,
    "width": _TEXT,
    "bucket": _INSTANT,
    "queue": _TEXT,
    "task": _TEXT,
    "started": _LONG,
    "completed": _LONG,
    "failed": _LONG,
    "retried": _LONG,
    "cancelled": _LONG,
    "stalled": _LONG,
    "queued": _LONG,
    "ended": _LONG,
    "errors": _LONG,
    "error_rate": DoubleType(),
    "run_sum_ms": _LONG,
    "run_count": _LONG,
    "avg_ms": DoubleType(),
    "p50_ms": DoubleType(),
    "p95_ms": DoubleType(),
    "p99_ms": DoubleType(),
    "wait_p95_ms": DoubleType(),
    "run_histogram": _HISTOGRAM,
    "wait_histogram": _HISTOGRAM,
}


def event_schema() -> StructType:
    """Return the columns of archived events, `date` and `hour` among them."""
    return _with_when(event_columns())


def dead_letter_schema() -> StructType:
    """Return the columns of archived dead letters, `date` and `hour` among them."""
    return _with_when(dead_letter_columns())


def rollup_schema() -> StructType:
    """Return the columns of roll-ups, `date` and `hour` among them."""
    return _with_when(StructType([StructField(name, kind) for name, kind in _ROLLUP.items()]))


def events(spark: SparkSession, root: str | os.PathLike[str]) -> DataFrame:
    """Return all archived events; none where nothing is archived yet.

    Each has its queue's ``number`` as key beside tenant and queue. ``date`` and ``hour`` say when
    it happened, in UTC: a filter by them spares the files of other hours.

    Args:
        spark: a session.
        root: where the archive is: a path or URI that Spark knows.

    Raises:
        InvalidOption: ``root`` is empty.
    """
    return read_merged(spark, path_of(root, EVENTS), event_schema())


def dead_letters(spark: SparkSession, root: str | os.PathLike[str]) -> DataFrame:
    """Return all archived dead letters with their arguments; none where nothing is archived yet.

    One that was redriven and failed again is there once for each end. ``date`` and ``hour`` say
    when it failed, in UTC.

    Args:
        spark: a session.
        root: where the archive is: a path or URI that Spark knows.

    Raises:
        InvalidOption: ``root`` is empty.
    """
    return read_merged(spark, path_of(root, DEAD), dead_letter_schema())


def rollups(spark: SparkSession, root: str | os.PathLike[str], width: str = "1min") -> DataFrame:
    """Return the roll-ups of one width; none where there are none yet.

    Args:
        spark: a session.
        root: where the archive is: a path or URI that Spark knows.
        width: of a bucket: ``10s``, ``1min`` or ``1h``.

    Raises:
        InvalidOption: ``root`` is empty, or there is no such width.
    """
    if width not in WIDTHS_S:
        raise InvalidOption(f"width={shown(width)} is not known: use {', '.join(WIDTHS_S)}")
    frame = read_merged(spark, path_of(root, ROLLUP), rollup_schema())
    return frame.where(F.col("width") == width)


def path_of(root: str | os.PathLike[str], *parts: str) -> str:
    """Return where something is in an archive.

    Raises:
        InvalidOption: ``root`` is empty.
    """
    path = os.fspath(root).rstrip("/")
    if not path:
        raise InvalidOption(
            f"root={shown(root)} is not valid: use the path or URI of a folder, such as "
            "/var/lib/headrace/archive"
        )
    return "/".join((path, *parts))


def with_partitions(frame: DataFrame, at: str, *, run: int) -> DataFrame:
    """Return rows with what their folders are named after.

    Args:
        frame: with ``tenant``.
        at: the column that has the instant of each row.
        run: the run of the archive that writes them.
    """
    hours = F.floor(F.unix_micros(F.col(at)) / (_HOUR_S * 1_000_000)).cast("int")
    named = {"date": date_of(hours), "hour": hour_of(hours), "run": F.lit(run)}
    return frame.withColumns(named)


def date_of(hours: Column) -> Column:
    """Return the day in UTC of whole hours since the epoch."""
    return F.date_from_unix_date(F.floor(hours / 24).cast("int"))


def hour_of(hours: Column) -> Column:
    """Return the hour of the day, two digits, of whole hours since the epoch."""
    return F.lpad(F.pmod(hours, F.lit(24)).cast("string"), 2, "0")


def read_merged(spark: SparkSession, path: str, schema: StructType) -> DataFrame:
    """Return what is in a folder, with the columns of a schema first and others behind them.

    What other releases wrote is read with it: they may have fewer columns, or more.
    """
    others = _written_columns(spark, path)
    if others is None:
        return spark.createDataFrame([], schema)
    known = {*schema.names, *PARTITIONS}
    more = [field for field in others.fields if field.name not in known]
    whole = StructType([*schema.fields, *more])
    return spark.read.schema(whole).parquet(path).select(*whole.names)


def read_known(spark: SparkSession, path: str, schema: StructType) -> DataFrame:
    """Return what is in a folder, of these columns alone.

    Files are listed and not looked into, so a filter by partitions reads nothing of others.
    """
    found = if_there(lambda: spark.read.schema(schema).parquet(path))
    return spark.createDataFrame([], schema) if found is None else found.select(*schema.names)


def of_tenant(frame: DataFrame, tenant: str | None) -> DataFrame:
    """Return the rows of a tenant; None: those of all.

    Raises:
        InvalidOption: that is no name of a tenant.
    """
    if tenant is None:
        return frame
    return frame.where(F.col("tenant") == check_name(tenant, what="tenant"))


def within(
    frame: DataFrame, instant: str, *, since: datetime | None, until: datetime | None
) -> DataFrame:
    """Return the rows of a span of time; the files of other hours are not read.

    Args:
        frame: of events, dead letters or roll-ups.
        instant: the column that says when.
        since: from then on; None: from the first.
        until: before then; None: to the last.

    Raises:
        InvalidOption: one has no time zone, or is out of bounds.
    """
    hour, at_ms = F.unix_date("date") * 24 + F.col("hour"), F.unix_millis(instant)
    if since is not None:
        since_ms = instant_ms(since, name="since")
        frame = frame.where((hour >= since_ms // _HOUR_MS) & (at_ms >= since_ms))
    if until is not None:
        until_ms = instant_ms(until, name="until")
        frame = frame.where((hour <= until_ms // _HOUR_MS) & (at_ms < until_ms))
    return frame


def _written_columns(spark: SparkSession, path: str) -> StructType | None:
    """Return the columns of all files in a folder; None where there are no files."""
    found = if_there(lambda: spark.read.options(mergeSchema=True).parquet(path))
    return None if found is None else found.schema


def if_there(read: Callable[[], DataFrame]) -> DataFrame | None:
    """Return what is read; None where there are no files of that path."""
    try:
        frame = read()
        frame.schema  # noqa: B018 (Spark Connect looks for files no sooner)
    except AnalysisException as error:
        if error.getCondition() in {"PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"}:
            return None
        raise
    return frame


def _with_when(schema: StructType) -> StructType:
    """Return the columns of files: a release may have written none of any."""
    return StructType([*(StructField(one.name, one.dataType) for one in schema), *_WHEN])

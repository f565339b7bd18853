"""Throughput, latency and errors of an archive as pictures, from its roll-ups."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from headrace.clock import datetime_of
from headrace.errors import InvalidOption
from headrace.job import check_name, check_text
from headrace.plain import shown
from headrace.spark.pipeline import layout
from headrace.spark.pipeline.buckets import bucket_at, summed
from headrace.spark.pipeline.failures import failures
from headrace.spark.pipeline.pictures import Lines, Rows, draw, share_text
from headrace.spark.requirements import check_matplotlib

MOST_BUCKETS = 400
"""A picture has no more buckets than that, of up to a week each where the span is long."""

MOST_TASKS = 20
MOST_PATTERNS = 10

_HOUR_S = 3600
_DAY_S = 24 * _HOUR_S
_WIDTHS = {
    10: ("10s", "10 seconds"),
    60: ("1min", "minute"),
    600: ("1min", "10 minutes"),
    _HOUR_S: ("1h", "hour"),
    6 * _HOUR_S: ("1h", "6 hours"),
    _DAY_S: ("1h", "day"),
    7 * _DAY_S: ("1h", "week"),
}
"""Seconds of a bucket in a picture; the roll-ups that it is made of, and how it is called."""

_HISTOGRAMS = ("run_histogram", "wait_histogram")
_TIMES = {"average": "avg_ms", "95 %": "p95_ms", "99 %": "p99_ms"}


class PlotScope(msgspec.Struct, frozen=True, kw_only=True):
    """What the pictures are of.

    Attributes:
        since: from when on; None: from the first.
        until: before when; None: to the last.
        names: those of tenant, queue and task, as far as they are said.
    """

    since: datetime | None
    until: datetime | None
    names: Mapping[str, str]

    def of(self, frame: DataFrame, instant: str) -> DataFrame:
        """Return those rows of a frame that the pictures are of."""
        for column, name in self.names.items():
            frame = frame.where(F.col(column) == name)
        return layout.within(frame, instant, since=self.since, until=self.until)


class _Buckets(msgspec.Struct, frozen=True):
    """Buckets of one width, from the first to the last in which something happened."""

    rows: Mapping[int, Row]
    width_s: int

    @property
    def starts_s(self) -> Sequence[int]:
        """When each begins, in seconds since the epoch."""
        if not self.rows:
            return ()
        return range(min(self.rows), max(self.rows) + 1, self.width_s)

    def values(self, column: str, gap: float | None = None) -> list[float | None]:
        """Return what is in a column, and ``gap`` for buckets in which nothing happened."""
        return [self.rows[start][column] if start in self.rows else gap for start in self.starts_s]


def plot(
    spark: SparkSession,
    root: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    tenant: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    queue: str | None = None,
    task: str | None = None,
) -> list[Path]:
    """Draw throughput, latency and errors, and return the three PNG files.

    Buckets are as narrow as the span of time allows: from ten seconds to a week. Times are in UTC.
    What failed most is read from the archived events, all else from roll-ups.

    Args:
        spark: a session.
        root: where the archive is: a path or URI that Spark knows.
        path: the folder for ``throughput.png``, ``latency.png`` and ``errors.png``, on this
            machine; it is made, and files of these names are written over.
        tenant: whose jobs; None: those of all.
        since: what happened from then on; None: from the first.
        until: what happened before then; None: to the last.
        queue: of which queue; None: all.
        task: of which task; None: all.

    Raises:
        MissingRequirement: matplotlib is not installed.
        InvalidOption: ``root`` is empty, ``path`` is no folder, ``tenant``, ``queue`` or ``task``
            is no name, or an instant has no time zone.
    """
    check_matplotlib()
    said = {
        "tenant": (tenant, check_name),
        "queue": (queue, check_name),
        "task": (task, check_text),
    }
    names = {
        column: check(name, what=column)
        for column, (name, check) in said.items()
        if name is not None
    }
    scope = PlotScope(since=since, until=until, names=names)
    folder = _made(path)
    files = []
    for name, (title, panels) in drawings(spark, root, scope).items():
        files.append(folder / f"{name}.png")
        draw(files[-1], title, panels)
    return files


def drawings(
    spark: SparkSession, root: str | os.PathLike[str], scope: PlotScope
) -> Mapping[str, tuple[str, Sequence[Lines | Rows]]]:
    """Return the title and the panels of each picture, by its name."""
    buckets, tasks = _rolled_up(spark, root, scope)
    patterns = _patterns(spark, root, scope)
    about, per = _about(scope, buckets), _WIDTHS[buckets.width_s][1]
    errors: list[Lines | Rows] = [
        _errors(buckets, per),
        _errors_by_task(tasks),
        _most_frequent(patterns),
    ]
    return {
        "throughput": (f"Throughput: {about}", [_jobs(buckets, per)]),
        "latency": (f"Latency: {about}", [_times(buckets, per), _times_by_task(tasks)]),
        "errors": (f"Errors: {about}", errors),
    }


def _rolled_up(
    spark: SparkSession, root: str | os.PathLike[str], scope: PlotScope
) -> tuple[_Buckets, list[Row]]:
    """Return what happened in each bucket of a fitting width, and what of each task."""

    def of_width(name: str) -> DataFrame:
        folder = layout.path_of(root, layout.ROLLUP, f"width={name}")
        return scope.of(layout.read_known(spark, folder, layout.rollup_schema()), "bucket")

    begin, end = _span_s(of_width("1h"))
    if end - begin < _DAY_S:
        begin, end = _span_s(of_width("10s"))
    width_s = next((s for s in _WIDTHS if end // s - begin // s < MOST_BUCKETS), 7 * _DAY_S)
    rows = of_width(_WIDTHS[width_s][0])
    in_buckets = summed(rows.withColumn("bucket", bucket_at("bucket", width_s)), "bucket")
    start_s = F.unix_seconds("bucket").alias("start_s")
    found = in_buckets.drop(*_HISTOGRAMS).select(start_s, "*").collect()
    tasks = summed(rows, "tenant", "queue", "task").drop(*_HISTOGRAMS).collect()
    return _Buckets({row["start_s"]: row for row in found}, width_s), tasks


def _span_s(rollups: DataFrame) -> tuple[int, int]:
    seconds = F.unix_seconds("bucket")
    [(begin, end)] = rollups.select(F.min(seconds), F.max(seconds)).collect()
    return begin or 0, end or 0


def _patterns(spark: SparkSession, root: str | os.PathLike[str], scope: PlotScope) -> list[Row]:
    found = failures(
        spark, root, since=scope.since, until=scope.until, tenant=scope.names.get("tenant")
    )
    for column, name in scope.names.items():
        found = found.where(F.col(column) == name)
    return found.orderBy(F.desc("count"), F.desc("last_seen")).limit(MOST_PATTERNS).collect()


def _made(path: str | os.PathLike[str]) -> Path:
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InvalidOption(f"path={shown(str(path))} is not valid: use that of a folder") from None
    return folder


def _about(scope: PlotScope, buckets: _Buckets) -> str:
    """Return of what a picture is, and of when."""
    names = [f"{column} {name}" for column, name in scope.names.items()]
    if "tenant" not in scope.names:
        names.insert(0, "all tenants")
    if buckets.starts_s:
        begin, last = (datetime_of(buckets.starts_s[place] * 1000) for place in (0, -1))
        end = last + timedelta(seconds=buckets.width_s)
        told = "%Y-%m-%d %H:%M:%S" if begin.second or end.second else "%Y-%m-%d %H:%M"
        names.append(f"{begin:{told}} to {end:{told}} UTC")
    return ", ".join(names)


def _jobs(buckets: _Buckets, per: str) -> Lines:
    counts = ("completed", "queued", "failed")
    series = {name: buckets.values(name, gap=0) for name in counts}
    return Lines(title=f"jobs each {per}", unit="jobs", ats=_ats(buckets), series=series)


def _times(buckets: _Buckets, per: str) -> Lines:
    series = {name: buckets.values(column) for name, column in _TIMES.items()}
    title = f"how long attempts ran: average and percentiles of each {per}"
    return Lines(title=title, unit="ms", ats=_ats(buckets), series=series)


def _errors(buckets: _Buckets, per: str) -> Lines:
    title = f"share of attempts that ended with an error, each {per}"
    series = {"share": buckets.values("error_rate")}
    return Lines(title=title, unit="share", ats=_ats(buckets), series=series)


def _ats(buckets: _Buckets) -> list[datetime]:
    return [datetime_of(start * 1000) for start in buckets.starts_s]


def _times_by_task(tasks: Sequence[Row]) -> Rows:
    ran = [row for row in tasks if row["run_count"]]
    slowest = sorted(ran, key=lambda row: -row["p99_ms"])[:MOST_TASKS]
    series = {name: [row[column] for row in slowest] for name, column in _TIMES.items()}
    title = _title("the slowest tasks", len(slowest), len(ran))
    return Rows(title=title, unit="ms", labels=_labels(slowest), series=series)


def _errors_by_task(tasks: Sequence[Row]) -> Rows:
    erred = [row for row in tasks if row["errors"]]
    worst = sorted(erred, key=lambda row: -row["errors"])[:MOST_TASKS]
    return Rows(
        title=_title("attempts that ended with an error, by task", len(worst), len(erred)),
        unit="jobs",
        labels=_labels(worst),
        series={"errors": [row["errors"] for row in worst]},
        notes=[f"{row['errors']:,} ({share_text(row['error_rate'])})" for row in worst],
    )


def _most_frequent(patterns: Sequence[Row]) -> Rows:
    return Rows(
        title="what went wrong most often",
        unit="jobs",
        labels=[_label_of_pattern(row) for row in patterns],
        series={"count": [row["count"] for row in patterns]},
        notes=[f"{row['count']:,} in {row['task']}" for row in patterns],
    )


def _label_of_pattern(row: Row) -> str:
    error = (row["error"] or "").rpartition(".")[2]
    return f"{error}: {row['pattern']}" if row["pattern"] else error


def _title(what: str, drawn: int, count: int) -> str:
    return f"{what}: {drawn} of {count}" if drawn < count else what


def _labels(tasks: Sequence[Row]) -> list[str]:
    """Return the names of tasks, with tenant and queue where these are not all the same."""
    told = [column for column in ("tenant", "queue") if len({row[column] for row in tasks}) > 1]
    return [" / ".join(row[column] for column in (*told, "task")) for row in tasks]

"""What fails alike: errors of a type and a place in the code that differ in what varies alone."""

from __future__ import annotations

import os
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace.events import JobEventKind
from headrace.job import FailReason
from headrace.spark.pipeline import layout
from headrace.storage.lines import PART_LIMIT

PATTERN_LIMIT = 120
"""Most characters of a pattern: what varies was longer, so that all of them have these."""

WORKER_LIFE = timedelta(days=30)
"""How long before the span a worker may have joined whose release is still looked up."""

_VARIABLE = (
    (r"(?<!\w)[bru]?(['\"`]).*?\1(?!\w)", "<text>"),
    (r"(?<!\w)[bru]?['\"`][^'\"`]*$", "<text>"),  # the message was cut in the middle of it
    (r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", "<email>"),
    (r"(?i)\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<uuid>"),
    (r"(?<=/)[^/\s'\"<>,;:)]*\d[^/\s'\"<>,;:)]*", "<name>"),
    (r"(?i)\b(?:0x[0-9a-f]+|(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,})\b", "<hex>"),
    (r"\b(?=[a-zA-Z_-]*\d)(?=[\d_-]*[a-zA-Z])[\w-]{20,}\b", "<id>"),
    (r"(?:(?<![\w)\]>])[-+])?\d+(?:[.,:_]\d+)*(?:[eE][-+]?\d+)?", "<number>"),
    (r"(<\w+>)(?:, ?\1)+", "$1, …"),
)
"""What varies from one message to the next, and what stands for it, in this order."""

_FAILS = (JobEventKind.FAILED, JobEventKind.RETRYING, JobEventKind.STALLED)
_LIVES = (JobEventKind.JOINED, JobEventKind.LEFT)
_GROUP = ("tenant", "queue", "task", "error", "pattern", "place")


def failures(
    spark: SparkSession,
    root: str | os.PathLike[str],
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    tenant: str | None = None,
) -> DataFrame:
    """Return what fails alike in an archive, with most dead letters first.

    See `patterns`. The release of a worker that joined more than 30 days before ``since`` is not
    told.

    Args:
        spark: a session.
        root: where the archive is: a path or URI that Spark knows.
        since: what happened from then on; None: from the first event.
        until: what happened before then; None: to the last event.
        tenant: whose; None: of all.

    Raises:
        InvalidOption: ``root`` is empty, ``tenant`` is no name, or an instant has no time zone.
    """
    events = layout.read_known(spark, layout.path_of(root, layout.EVENTS), layout.event_schema())
    events = layout.of_tenant(events, tenant)
    lived_since = None if since is None else since - WORKER_LIFE
    lives = layout.within(events, "at", since=lived_since, until=until)
    return patterns(layout.within(events, "at", since=since, until=until), lives)


def patterns(events: DataFrame, lives: DataFrame) -> DataFrame:
    """Return a row for each task, type of error, pattern of its message and place in the code.

    A place is a file and a function: lines change from release to release.

    Args:
        events: as `headrace.spark.pipeline.events` gives them.
        lives: the same, among them those of the workers that failed as they joined.

    Returns:
        ``tenant``, ``queue``, ``task``, ``error`` (its type, else the reason), ``pattern``,
        ``count`` of what went wrong, of it ``retried`` and ``stalled``; ``dead`` letters, ``jobs``,
        ``first_seen``, ``last_seen``, ``versions`` of the app in order; of the last one ``frame``,
        ``message`` and ``example_job_id``.
    """
    failed = events.where(F.col("kind").isin([kind.value for kind in _FAILS]))
    told = failed.withColumns(
        {
            "error": F.coalesce("error", "detail"),
            "pattern": pattern_of(F.col("message")),
            "place": _place_of(F.col("frame")),
        }
    )
    workers = lives.where(F.col("kind").isin([kind.value for kind in _LIVES]))
    releases = workers.groupBy("tenant", "incarnation").agg(F.max("app_version").alias("release"))
    grouped = told.join(releases, ["tenant", "incarnation"], "left").groupBy(*_GROUP)
    found = grouped.agg(*_summary()).drop("place")
    return found.orderBy(F.desc("dead"), F.desc("count"), F.desc("last_seen"))


def pattern_of(message: Column) -> Column:
    """Return what a message has in common with those that say the same of something else."""
    is_cut = F.length(message) >= PART_LIMIT
    pattern = F.when(is_cut, F.regexp_replace(message, r"[^\s'\"`]+$", "…")).otherwise(message)
    for varies, name in _VARIABLE:
        pattern = F.regexp_replace(pattern, varies, name)
    shortened = F.concat(F.substring(pattern, 1, PATTERN_LIMIT - 1), F.lit("…"))
    return F.when(F.length(pattern) > PATTERN_LIMIT, shortened).otherwise(pattern)


def _place_of(frame: Column) -> Column:
    """Return file and function of a frame, without what varies from release to release."""
    no_line = F.regexp_replace(frame, r":\d+ in ", " in ")
    return F.regexp_replace(no_line, r"[^/]*\d[^/]*/", "*/")


def _summary() -> list[Column]:
    kind, latest = F.col("kind"), F.struct("at", "number")
    # A death that ends a job has an event of its own before.
    is_told = (kind == JobEventKind.FAILED.value) & (F.col("detail") == FailReason.STALLED.value)
    counts = {
        "count": ~F.coalesce(is_told, F.lit(False)),  # noqa: FBT003
        "dead": kind == JobEventKind.FAILED.value,
        "retried": kind == JobEventKind.RETRYING.value,
        "stalled": kind == JobEventKind.STALLED.value,
    }
    return [
        *(F.count_if(is_so).alias(name) for name, is_so in counts.items()),
        F.count_distinct("job_id").alias("jobs"),
        F.min("at").alias("first_seen"),
        F.max("at").alias("last_seen"),
        F.array_sort(F.collect_set("release")).alias("versions"),
        F.max_by("frame", latest).alias("frame"),
        F.max_by("message", latest).alias("message"),
        F.max_by("job_id", latest).alias("example_job_id"),
    ]

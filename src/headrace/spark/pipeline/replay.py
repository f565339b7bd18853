"""Archived dead letters become jobs again."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec.structs import replace
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from headrace.errors import InvalidOption
from headrace.job import DEFAULT_TENANT, ID_LIMIT_BYTES, check_name, check_text, new_job_id
from headrace.plain import shown
from headrace.settings import check_count
from headrace.spark.frames import FrameReport, write_frame
from headrace.spark.options import WriteOptions
from headrace.spark.pipeline.layout import dead_letters
from headrace.spark.writing import terms_of

WRITE_ID_LIMIT_BYTES = 128
"""Of a replay's write id, with which the id of each of its jobs begins."""

_KEPT = (
    *("payload", "task", "priority", "lane", "max_stalls", "keep_ms", "on_failed", "limit_keys"),
    *("fair_key", "slots", "options"),
)
"""What a job asks for as its dead letter did."""


def replay(
    spark: SparkSession,
    root: str | os.PathLike[str],
    *,
    url: str = "",
    tenant: str = DEFAULT_TENANT,
    where: str = "",
    queue: str | None = None,
    write_id: str | None = None,
    limit: int | None = None,
    dry_run: bool = False,
    progress: bool = False,
) -> FrameReport:
    """Enqueue archived dead letters again, as new jobs.

    Each asks for what the dead letter did: its payload, whatever that is, options, priority, lane,
    ``max_stalls``, ``on_failed``, ``slots``, how long its record is kept, and the keys by which it
    takes turns and meets the limits of the queue where it goes. Counts and errors begin anew, it
    may start as soon as its limits let it, and it does not expire. In archives of releases that did
    not write them, ``max_stalls``, ``slots`` and keys are not known, nor a ``keep`` that its task
    has said: then they are the defaults, or none. A job that has failed for good several times is
    replayed once, as it last was. What is still a dead letter in its queue stays there, and is no
    obstacle.

    Each queue gets its jobs as a whole or not at all. A replay that was interrupted is finished by
    the same call with the same ``write_id``, and one that was not brings nothing twice: it is
    known for a week, even where the jobs have ended since and are not kept any more.

    Args:
        spark: a session.
        root: where the archive is: a path or URI that Spark knows.
        url: where the jobs go; "": as ``HEADRACE_URL`` of each process says.
        tenant: whose dead letters, and whose queues they go to.
        where: a condition of Spark SQL over the columns of `dead_letters`, as in
            ``error = 'builtins.OSError' AND ended_at >= '2026-01-31'``; "": all.
        queue: where all of them go, default each to its own.
        write_id: the name of this replay, 1 to 128 bytes, default a new one: it is in the report.
        limit: at most so many, those that failed first; default all.
        dry_run: count them and enqueue nothing.
        progress: draw a bar.

    Returns:
        How many dead letters were taken (``rows``) and how many became jobs (``added``), of all
        queues together; of a replay that is known already, what that had brought in. ``queue`` is
        "" unless it was said.

    Raises:
        InvalidOption: a name or ``limit`` is out of bounds, or ``where`` is no such condition.
        StorageUnavailable: the storage can't be reached.
    """
    check_name(tenant, what="tenant")
    if queue is not None:
        check_name(queue, what="queue")
    if limit is not None:
        check_count(limit, name="limit", most=2**31 - 1)
    write_id = new_job_id() if write_id is None else write_id
    check_text(write_id, what="write_id", limit_bytes=WRITE_ID_LIMIT_BYTES)
    chosen = _chosen(dead_letters(spark, root).where(F.col("tenant") == tenant), where, limit)
    if dry_run:
        return _report(queue, write_id, [], rows=chosen.count())
    jobs = chosen.select("queue", *_columns(write_id, is_moved=queue is not None))
    to = WriteOptions(url=url, tenant=tenant, is_atomic=True, write_id=write_id, as_it_was=True)
    reports = [
        _enqueued(of_queue, replace(to, queue=name), is_shown=progress)
        for name, of_queue in _by_queue(jobs, queue)
    ]
    return _report(queue, write_id, reports, rows=sum(report.rows for report in reports))


def _enqueued(jobs: DataFrame, to: WriteOptions, *, is_shown: bool) -> FrameReport:
    return write_frame(jobs, to, terms_of(to), is_named=True, is_shown=is_shown)


def _report(
    queue: str | None, write_id: str, reports: Sequence[FrameReport], *, rows: int
) -> FrameReport:
    """Return what became of all queues together."""
    duplicates = [report.duplicates for report in reports]
    return FrameReport(
        rows=rows,
        added=sum(report.added for report in reports),
        duplicates=None if None in duplicates else sum(filter(None, duplicates)),
        queue=queue or "",
        write_id=write_id,
        is_known=bool(reports) and all(report.is_known for report in reports),
    )


def _chosen(letters: DataFrame, where: str, limit: int | None) -> DataFrame:
    """Return the last end of each job that the condition takes, of at most so many jobs."""
    if where:
        letters = _filtered(letters, where)
    latest = Window.partitionBy("queue", "job_id").orderBy(F.col("ended_at").desc())
    once = letters.withColumn("_place", F.row_number().over(latest)).where("_place = 1")
    if limit is None:
        return once
    return once.orderBy("ended_at", "queue", "job_id").limit(limit)


def _filtered(letters: DataFrame, where: str) -> DataFrame:
    try:
        found = letters.where(where)
        found.schema  # noqa: B018 (with Spark Connect it is looked at only now)
    except AnalysisException as error:
        told = str(error).strip().partition("\n")[0]
        raise InvalidOption(
            f"where={shown(where)} is no condition over the columns of dead letters: {told}"
        ) from None
    return found


def _by_queue(jobs: DataFrame, queue: str | None) -> list[tuple[str, DataFrame]]:
    """Return the jobs of each queue that they go to, all of them where one is named."""
    rows = jobs.drop("queue")
    if queue is not None:
        return [(queue, rows)]
    names = sorted(row["queue"] for row in jobs.select("queue").distinct().collect())
    return [(name, jobs.where(F.col("queue") == name).drop("queue")) for name in names]


def _columns(write_id: str, *, is_moved: bool) -> list[Column]:
    """Return what becomes of a dead letter's columns.

    An id is unique in its queue only: where jobs of several go to one, it is named in the new id.
    """
    name = F.concat_ws(":", "queue", "job_id") if is_moved else F.col("job_id")
    prefix = f"replay:{write_id}:"
    room = ID_LIMIT_BYTES - len(prefix.encode())
    short = F.when(F.octet_length(name) <= room, name).otherwise(F.sha2(name.cast("binary"), 256))
    job_id = F.concat(F.lit(prefix), short).alias("id")
    return [job_id, *map(F.col, _KEPT)]

"""A whole DataFrame becomes jobs, with a report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Unpack

from pyspark.sql import DataFrame

from headrace.errors import HeadraceError, InvalidOption
from headrace.job import check_text
from headrace.options import spelled_out
from headrace.plain import shown
from headrace.spark.arguments import WriteArguments, options_of
from headrace.spark.columns import check_columns
from headrace.spark.hearing import StagesDone
from headrace.spark.known_writes import check_batch, known
from headrace.spark.options import WriteOptions
from headrace.spark.progress import drawn, of_write, spark_followed
from headrace.spark.raised import as_raised
from headrace.spark.storages import CHECK_S
from headrace.spark.writing import (
    WRITTEN,
    Written,
    check_target,
    finish,
    give_up,
    in_arrow,
    read_written,
    terms_of,
    warn_of_history,
)
from headrace.staging import WriteTerms
from headrace.storage.values import StageInfo
from headrace.views.value import PublicValue
from headrace.views.writes import WriteReport


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameReport(PublicValue):
    """What became of a DataFrame that was written.

    Attributes:
        rows: how many it had; of a write that was known, how many that had brought in.
        added: how many became jobs. Of a direct write those that the last attempts of Spark's tasks
            have added: what an attempt that failed had brought in is a duplicate to the next one.
        duplicates: how many met a job of their id; None if not all are stored yet, since the
            storage had no room: workers go on.
        queue: of the jobs whose row named none.
        write_id: of an atomic write: under this it may be run again; None of a direct one.
        is_known: whether an earlier run had committed it, so that this one brought in nothing.
    """

    rows: int
    added: int
    duplicates: int | None
    queue: str
    write_id: str | None = None
    is_known: bool = False


@spelled_out(WriteArguments)
def enqueue_dataframe(
    df: DataFrame,
    *,
    write_id: str | None = None,
    progress: bool = False,
    **said: Unpack[WriteArguments],
) -> FrameReport:
    """Make a job of each row of a DataFrame, as `prepare` makes one; blocks until all are there.

    Directly, each row is a job as soon as its batch is stored. If the call fails, some are there:
    run it again, and ids bring the rest, once each. Atomically, all of them are there or none: laid
    down first, committed at once, and published; run again with the same ``write_id`` it brings in
    nothing, also after the jobs have run.

    It runs in the session of the DataFrame, classic or Spark Connect.

    Args:
        df: rows with ``payload`` and, as a rule, ``id``, and what else `prepare` makes.
        write_id: of an atomic write, which may be run again; default: a random one.
        progress: draw on standard error how far it is.
        **said: see `WriteArguments`.

    Raises:
        InvalidOption: an argument is not valid, or it is a stream.
        InvalidRows: a column or a row can't become a job; nothing of its batch was stored.
        StorageError: the storage is away or refuses. Of an atomic write that may have been
            committed, a note says the ``write_id``, under which to run it again.
    """
    options = options_of(said)
    if df.isStreaming:
        raise InvalidOption(
            "a stream has no end: write it by writeStream.format('headrace'), or by "
            "writeStream.foreachBatch(enqueue_batch(...))"
        )
    if write_id is not None and not options.is_atomic:
        raise InvalidOption(
            f"write_id={shown(write_id)} is for commit='atomic': a direct write is safe to run "
            "again by the ids of its jobs"
        )
    name = "" if write_id is None else check_text(write_id, what="write_id")
    terms = terms_of(options, write_id=name) if options.is_atomic else None
    return write_frame(df, options, terms, is_named=write_id is not None, is_shown=progress)


def write_frame(
    df: DataFrame,
    options: WriteOptions,
    terms: WriteTerms | None,
    *,
    is_named: bool,
    check_s: float = CHECK_S,
    is_shown: bool = False,
) -> FrameReport:
    """Write a DataFrame, and return what became of it.

    It warns where the queue forgets the ids of jobs too early to tell the write when it is run
    again.

    Args:
        df: rows with columns of jobs.
        options: of the write.
        terms: of an atomic one.
        is_named: whether a write that is run again will be known by its name.
        check_s: how long the storage may be away before anything runs.
        is_shown: whether it is drawn how far it is.

    Raises:
        HeadraceError: see `enqueue_dataframe`.
    """
    check_columns(df.schema, options)
    check_target(options, for_s=check_s)
    if terms is None:
        report = _directly(df, options, is_shown=is_shown)
    else:
        report = _atomically(df, options, terms, is_shown=is_shown)
    if not is_named:
        warn_of_history(options, report.rows, df.columns)
    return report


def _directly(df: DataFrame, options: WriteOptions, *, is_shown: bool) -> FrameReport:
    written = _written(df, options, None, is_shown=is_shown)
    rows, added = sum(one.rows for one in written), sum(one.added for one in written)
    return FrameReport(rows=rows, added=added, duplicates=rows - added, queue=options.queue)


def _written(
    df: DataFrame,
    options: WriteOptions,
    terms: WriteTerms | None,
    *,
    on_staged: Callable[[StageInfo], None] | None = None,
    is_shown: bool,
) -> list[Written]:
    label = f"Rows to queue {options.queue}"
    in_partition = in_arrow(options, terms, on_staged)
    with as_raised(), spark_followed(df.sparkSession, label, is_shown=is_shown):
        return [read_written(row) for row in df.mapInArrow(in_partition, WRITTEN).collect()]


def _atomically(
    df: DataFrame, options: WriteOptions, terms: WriteTerms, *, is_shown: bool
) -> FrameReport:
    report = known(options, terms)
    if report is None:
        written = _staged(df, options, terms, is_shown=is_shown)
        try:
            with drawn(f"Jobs of queue {options.queue}", is_shown=is_shown) as draw:
                report = finish(options, terms, written, on_progress=of_write(draw))
        except HeadraceError as error:
            give_up(options, terms, written)
            error.add_note(f"run it again with write_id={terms.write_id!r}: nothing comes twice")
            raise
    check_batch(report, terms)
    return _report(report)


def _staged(
    df: DataFrame, options: WriteOptions, terms: WriteTerms, *, is_shown: bool
) -> list[Written]:
    """Return what all partitions have staged; if one fails, drop what the others have."""
    with StagesDone(df.sparkSession) as done:
        try:
            return _written(df, options, terms, on_staged=done.add, is_shown=is_shown)
        except BaseException:
            give_up(options, terms, [Written(one.jobs, stage=one) for one in done.stages()])
            raise


def _report(report: WriteReport) -> FrameReport:
    return FrameReport(
        rows=report.rows,
        added=report.added,
        duplicates=report.duplicates,
        queue=report.queue,
        write_id=report.id,
        is_known=report.is_known,
    )

"""What one partition writes, and what the driver does before and after.

A direct write stores each call of jobs as it comes. An atomic one stages them, each attempt at a
partition under a token of its own; the driver commits what the attempts that count have staged.
"""

from __future__ import annotations

import logging
import secrets
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

import msgspec
import pyarrow as pa

from headrace.errors import StorageError
from headrace.job import ADDED
from headrace.logs.log import write_line
from headrace.repeat import repeat_blocking
from headrace.spark.lanes import TaskLanes
from headrace.spark.options import WriteOptions
from headrace.spark.rows import JobRows
from headrace.spark.shipping import Shipped
from headrace.spark.staged import staged
from headrace.spark.storages import CHECK_S, asker_of, storage_of
from headrace.staging import WriteTerms
from headrace.storage.base import check_writes_in_bulk
from headrace.storage.steps import at_once
from headrace.storage.values import StageInfo, WriteInfo
from headrace.sync.enqueues import Enqueues
from headrace.views.writes import WriteReport
from headrace.writing import Writing, unheard

QUERY_PROPERTY = "sql.streaming.queryId"
"""Under which local property Spark tells the id of a streaming query."""

WRITTEN = "rows long, added long, token string, length long"
"""The columns of what `in_arrow` returns, one row for each partition."""

_WRITTEN = pa.schema(
    [
        ("rows", pa.int64()),
        ("added", pa.int64()),
        ("token", pa.string()),
        ("length", pa.int64()),
    ]
)


class Written(msgspec.Struct, frozen=True):
    """What became of one partition.

    Attributes:
        rows: how many it had.
        added: how many of them this attempt has made jobs, by a direct write. What an earlier
            attempt of Spark at the same partition had brought in does not count.
        stage: what it has staged for an atomic write, None if nothing.
    """

    rows: int
    added: int = 0
    stage: StageInfo | None = None


def check_target(options: WriteOptions, *, for_s: float = CHECK_S) -> None:
    """See on the driver that the storage can be written to, before any task runs.

    Args:
        options: of the write.
        for_s: how long to wait for one that is away.

    Raises:
        InvalidOption: the URL is not valid, or one that processes can't share.
        StorageUnavailable: it can't be reached.
        StorageRefused: it can't be used, or has no bulk writes.
    """
    storage = storage_of(options.url, options.tenant)
    if options.is_atomic:
        check_writes_in_bulk(storage)
    repeat_blocking(lambda: at_once(storage.check()), for_s=for_s)


def terms_of(options: WriteOptions, *, write_id: str = "", batch: int = 0) -> WriteTerms:
    """Return the terms of an atomic write.

    Args:
        options: of the write.
        write_id: if they name none; "": a random one.
        batch: of a stream.
    """
    return WriteTerms(
        write_id=options.write_id or write_id or secrets.token_hex(16),
        queue=options.queue,
        batch=batch,
        replaces_ended=options.replaces_ended,
        stage_ttl_ms=options.stage_ttl_ms,
        keep_ms=options.keep_write_ms,
    )


def write_partition(
    batches: Iterable[pa.RecordBatch], options: WriteOptions, terms: WriteTerms | None = None
) -> Written:
    """Write the rows of one partition, in this process; memory does not grow with them.

    Args:
        batches: its rows.
        options: of the write.
        terms: of an atomic write; None: directly.

    Raises:
        InvalidRows: a row can't become a job; of its batch none did.
        StorageError: the storage refused it, or was away for `retryFor`.
    """
    asker = asker_of(options)
    calls = chain.from_iterable(map(JobRows(options, TaskLanes(asker)).calls, batches))
    if terms is not None:
        stage = staged(calls, terms, asker)
        if stage is None:
            return Written(sum(batch.num_rows for batch in batches))
        return Written(stage.jobs, stage=stage if stage.jobs else None)
    rows = added = 0
    enqueues = Enqueues(asker.storage, retry_for_s=options.retry_for_ms / 1000, outage=asker.outage)
    for jobs, outcomes in enqueues.in_calls(calls):
        rows += len(jobs)
        added += sum(map(outcomes.count, ADDED))
    return Written(rows, added)


def finish(
    options: WriteOptions,
    terms: WriteTerms,
    written: Iterable[Written],
    *,
    on_progress: Callable[[WriteInfo], None] = unheard,
) -> WriteReport:
    """Commit on the driver what partitions have staged, and publish it.

    What they have staged is dropped if the write is known.

    Args:
        options: of the write.
        terms: with which it was staged.
        written: what each partition came to.
        on_progress: told now and then how much is published.

    Raises:
        StageLost: what was staged has outlived ``stageTtl``; nothing was committed.
        StorageError: it is not answered: committed or not, to run the write again is safe.
    """
    asker = asker_of(options)
    writing = Writing(terms, lambda: asker)
    at_once(writing.commit_stages(_stages(written)))
    report = at_once(writing.publish(on_progress))
    if not report.is_published:
        _tell_of_rest(report)
    return report


def _tell_of_rest(report: WriteReport) -> None:
    """Say that workers go on publishing: the storage has no room for the rest, or went away."""
    write_line(
        logging.WARNING,
        "spark.publishing_left_to_workers",
        queue=report.queue,
        write_id=report.id,
        rows=report.rows,
        added=report.added,
    )


def give_up(options: WriteOptions, terms: WriteTerms, written: Iterable[Written]) -> None:
    """Drop on the driver what was staged; if it was committed after all, publish it instead.

    What can't be done now goes by time, or by the sweeps of workers.
    """
    asker = asker_of(msgspec.structs.replace(options, retry_for_ms=0))
    writing = Writing(terms, lambda: asker)
    with suppress(StorageError):
        at_once(writing.discard_stages(_stages(written)))
        if at_once(asker.storage.read_write(terms.queue, terms.write_id)) is not None:
            at_once(writing.publish())


def warn_of_history(options: WriteOptions, rows: int, columns: Collection[str]) -> None:
    """Warn on the driver where a queue remembers fewer ended jobs than were written.

    The ids of the others are free again once they have run, and the same rows would run twice: it
    is for writes that are told by the ids of their jobs alone. Where rows name their queues, none
    is looked at.

    Args:
        options: of the write.
        rows: how many were written.
        columns: of the rows.
    """
    if "queue" in columns:
        return
    queue = options.queue
    try:
        history = at_once(asker_of(options).storage.stats(queue)).settings.history
    except StorageError:
        return  # the write is done, and this was advice
    if rows <= history:
        return
    event = "spark.history_too_small"
    write_line(logging.WARNING, event, queue=queue, rows=rows, history=history)
    warnings.warn(
        f"{rows:,} rows were written to queue {queue!r}, which remembers {history:,} ended jobs: "
        "written again once all have run, the rest would run twice. Raise it by "
        f"`headrace queue configure {queue} --history {rows}`, or write with commit=atomic and a "
        "writeId",
        stacklevel=2,
    )


def in_arrow(
    options: WriteOptions,
    terms: WriteTerms | None,
    on_staged: Callable[[StageInfo], None] | None = None,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what `DataFrame.mapInArrow` calls on each partition, see `write_partition`.

    It yields one row with the columns of `WRITTEN`, which `read_written` reads.

    Args:
        options: of the write.
        terms: of an atomic one.
        on_staged: told by each attempt what it has staged; it goes to executors.
    """
    return _InArrow(options, terms, on_staged)


class _InArrow(Shipped):
    def __init__(
        self,
        options: WriteOptions,
        terms: WriteTerms | None,
        on_staged: Callable[[StageInfo], None] | None,
    ) -> None:
        self._options = options
        self._terms = terms
        self._on_staged = on_staged

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        written = write_partition(batches, self._options, self._terms)
        stage = written.stage
        if stage is not None and self._on_staged is not None:
            self._on_staged(stage)
        row = {
            "rows": written.rows,
            "added": written.added,
            "token": None if stage is None else stage.token,
            "length": None if stage is None else stage.length,
        }
        yield pa.RecordBatch.from_pylist([row], schema=_WRITTEN)


def read_written(row: Any) -> Written:
    """Return what a row of `in_arrow` says."""
    if row.token is None:
        return Written(row.rows, row.added)
    return Written(row.rows, row.added, StageInfo(row.token, row.length, row.rows))


def _stages(written: Iterable[Written]) -> list[StageInfo]:
    return [one.stage for one in written if one.stage is not None]

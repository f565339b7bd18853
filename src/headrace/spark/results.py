"""What became of the jobs of a DataFrame, beside the rows that made them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from headrace.clock import Duration, duration_ms
from headrace.errors import InvalidOption
from headrace.frames import innermost_frame
from headrace.job import JobState, check_name, check_text
from headrace.plain import shown
from headrace.spark.ids import column_of, hashed, key_names
from headrace.spark.json_columns import quoted
from headrace.spark.progress import drawn
from headrace.spark.shipping import Shipped
from headrace.spark.waits import Jobs, Patience, Wait, asker_of, ends_of, wait_published
from headrace.storage.limits import BATCH_LIMIT
from headrace.storage.steps import at_once
from headrace.storage.values import End
from headrace.sync.asking import BlockingAsker
from headrace.waiting import whole

EXAMPLES = 3

_ADDED = StructType(
    [
        StructField("state", StringType()),
        StructField("reason", StringType()),
        StructField("result", StringType()),
        StructField("has_result", BooleanType()),
        StructField("error", StringType()),
        StructField("message", StringType()),
        StructField("frame", StringType()),
    ]
)


_ARROW_KINDS = [pa.bool_() if name == "has_result" else pa.string() for name in _ADDED.names]
_Row: TypeAlias = tuple[str | bool | None, ...]
_NO_JOB: _Row = (None, None, None, False, None, None, None)


def results(
    df: DataFrame,
    *,
    queue: str,
    url: str = "",
    tenant: str = "default",
    id_column: str = "id",
    id_from: str | Sequence[str] | None = None,
    task: str | None = None,
    wait: bool = False,
    write_id: str | None = None,
    timeout: Duration | None = None,
    progress: bool = False,
) -> DataFrame:
    """Return rows with what became of their jobs, as it is when the result is computed.

    Columns are added, and rows stay where they are: there is no shuffle. ``state``: where the job
    stands, null if there is no such job or none any more. ``reason``: why it ended so. ``result``:
    what the handler returned, as JSON; ``has_result`` tells a result of ``null`` from none that
    is kept. ``error``, ``message``, ``frame``: type, text and place of a dead letter's last error.

    A record is kept for the ``keep`` of its job, an hour by default, and as long as it is among
    the newest ``history`` of its queue, 100,000 by default. Let a queue that is to run more jobs
    than that keep more before: ``app.queue(...).configure(history=...)``.

    Args:
        df: rows with the ids of jobs, such as what `prepare` has made.
        queue: the queue of the jobs.
        url: the storage's; default: as ``HEADRACE_URL`` says in each process.
        tenant: whose queue.
        id_column: the column with the ids.
        id_from: the columns that `prepare` has made ids from, if the rows have none: the ids are
            made again, and added as ``id_column``. Not those of ``duplicates="keep"``, nor those of
            micro-batches, which are numbered.
        task: with which they were made.
        wait: block until all of the jobs have ended; ids for which there is no job count as ended.
            The ids are held on the driver meanwhile.
        write_id: with ``wait``: of the atomic write that brings the jobs in, as its report says it;
            None of a direct one. What was committed may be published later, by workers, so before
            anything else this blocks until all of it is stored.
        timeout: the longest to wait for both, in seconds or as a `timedelta`; default: as long as
            it takes.
        progress: draw on standard error how many are stored, and how many have ended.

    Raises:
        InvalidOption: an argument is not valid, or a column is missing or has a name that is added.
        WriteNotFound: the queue knows no write ``write_id``: it was never committed, or longer ago
            than its ``keep_write``.
        WaitTimeout: some jobs are not stored, or have not ended in time; the message says how many.
        StorageError: the storage is away for over a minute, or refuses.
    """
    jobs = Jobs(check_name(queue, what="queue"), url, check_name(tenant, what="tenant"), id_column)
    timeout_ms = None if timeout is None else duration_ms(timeout, name="timeout")
    if write_id is not None:
        check_text(write_id, what="write_id")
    if not wait and (write_id is not None or timeout is not None or progress):
        raise InvalidOption("write_id, timeout and progress are for wait=True")
    if wait and df.isStreaming:
        raise InvalidOption("wait=True is for a DataFrame that ends: a stream has more jobs")
    if id_from is not None:
        df = _with_ids(df, id_column, key_names(id_from), task)
    elif task is not None:
        raise InvalidOption("task goes into the ids that are made, so it needs id_from")
    _check(df, id_column)
    if wait:
        _wait(df, jobs, write_id, Patience(timeout_ms), is_shown=progress)
    schema = StructType([*df.schema.fields, *_ADDED.fields])
    return df.mapInArrow(_WithOutcomes(jobs), schema)


def failures_by_error(results: DataFrame, *, id_column: str = "id") -> DataFrame:
    """Return how often each error has made a dead letter, the most frequent first.

    Args:
        results: what `results` returned.
        id_column: the column with the ids of jobs.

    Returns:
        Rows of ``error``, ``message``, ``frame``, ``count`` and ``example_ids``, of three jobs;
        where a job has failed without an error, as one that has expired, its reason is the error.
    """
    alike = ["error", "message", "frame"]
    dead = results.where(F.col("state") == JobState.FAILED.value).select(
        F.col(quoted(id_column)).cast("string").alias("id"),
        F.coalesce("error", "reason").alias("error"),
        "message",
        "frame",
    )
    place = F.row_number().over(Window.partitionBy(*alike).orderBy("id"))
    example = F.when(F.col("place") <= EXAMPLES, F.col("id"))
    return (
        dead.withColumn("place", place)
        .groupBy(*alike)
        .agg(
            F.count(F.lit(1)).alias("count"),
            F.sort_array(F.collect_list(example)).alias("example_ids"),
        )
        .orderBy(F.desc("count"), *alike)
    )


def _with_ids(df: DataFrame, id_column: str, keys: Sequence[str], task: str | None) -> DataFrame:
    """Add the ids that `prepare` has made."""
    if id_column in df.columns:
        raise InvalidOption(
            f"there is a column {shown(id_column)} already: say id_column=... for the ids that are "
            "made of id_from"
        )
    for name in keys:
        column_of(df, name)
    name = F.lit(None if task is None else check_text(task, what="task"))
    made_of = {key: key for key in keys}
    return df.withColumn(id_column, hashed(df, made_of, task=name, salt=None))


def _check(df: DataFrame, id_column: str) -> None:
    if id_column not in df.columns:
        raise InvalidOption(
            f"there is no column {shown(id_column)} with ids of jobs: say id_column=..., of "
            f"{', '.join(df.columns)}"
        )
    kind = df.schema[id_column].dataType
    if not isinstance(kind, StringType):
        raise InvalidOption(
            f"column {shown(id_column)} is of type {kind.simpleString()}, and ids are strings: "
            "cast it"
        )
    taken = sorted(set(_ADDED.names) & set(df.columns))
    if taken:
        raise InvalidOption(f"{', '.join(taken)} would be added: drop or rename what is there")


def _wait(
    df: DataFrame, jobs: Jobs, write_id: str | None, patience: Patience, *, is_shown: bool
) -> None:
    """Block until all are there and have ended."""
    if write_id is not None:
        with drawn("Jobs stored", is_shown=is_shown) as draw:
            wait_published(jobs, write_id, patience, draw)
    table = df.select(F.col(quoted(jobs.id_column)).alias("id")).toArrow()
    ids = table.column("id").drop_null()
    with drawn("Jobs", is_shown=is_shown) as draw:
        Wait(jobs, ids, draw).run(patience)


class _WithOutcomes(Shipped):
    """Adds to each batch what became of its jobs; runs on executors."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        jobs = self._jobs
        asker = asker_of(jobs)
        for batch in batches:
            ids = batch.column(jobs.id_column).to_pylist()
            rows = [
                row
                for first in range(0, len(ids), BATCH_LIMIT)
                for row in _told(asker, jobs, ids[first : first + BATCH_LIMIT])
            ]
            added = [
                pa.array([row[place] for row in rows], kind)
                for place, kind in enumerate(_ARROW_KINDS)
            ]
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, *added], names=[*batch.schema.names, *_ADDED.names]
            )


def _told(asker: BlockingAsker, jobs: Jobs, ids: Sequence[str | None]) -> Iterator[_Row]:
    """Yield the added columns of rows, of which some may have no id."""
    known = [job_id for job_id in ids if job_id is not None]
    ends = iter(ends_of(asker, jobs, known) if known else ())
    for job_id in ids:
        end = None if job_id is None else next(ends)
        yield _NO_JOB if end is None or end.state is None else _row(asker, end)


def _row(asker: BlockingAsker, end: End) -> _Row:
    if end.is_cut:
        end = at_once(asker.ask(lambda: whole(asker.storage, end)))
    error = end.error
    return (
        None if end.state is None else end.state.value,
        end.reason or None,
        None if end.result is None else end.result.decode(),
        end.result is not None,
        None if error is None else error.type,
        None if error is None else error.message,
        None if error is None else innermost_frame(error) or None,
    )

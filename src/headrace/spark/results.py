"""What became of the jobs of a DataFrame, beside the rows that made them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from headrace.clock import Duration, duration_ms
from headrace.errors import InvalidOption, WaitTimeout
from headrace.frames import innermost_frame
from headrace.job import JobState, check_name
from headrace.plain import shown
from headrace.spark.json_columns import quoted
from headrace.spark.progress import Draw, drawn
from headrace.spark.shipping import Shipped
from headrace.spark.storages import storage_of
from headrace.storage.limits import BATCH_LIMIT
from headrace.storage.steps import at_once
from headrace.storage.values import End
from headrace.sync.asking import BlockingAsker
from headrace.waiting import is_end, whole

RETRY_S = 60.0
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0
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


class Jobs(msgspec.Struct, frozen=True):
    """Where jobs are, and which column has their ids; goes to executors.

    Attributes:
        queue: their queue.
        url: of the storage; "": as ``HEADRACE_URL`` says in each process.
        tenant: whose queue.
        id_column: has their ids.
    """

    queue: str
    url: str
    tenant: str
    id_column: str


def results(
    df: DataFrame,
    *,
    queue: str,
    url: str = "",
    tenant: str = "default",
    id_column: str = "id",
    wait: bool = False,
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
        wait: block until all of the jobs have ended; ids for which there is no job count as ended.
            The ids are held on the driver meanwhile.
        timeout: the longest to wait, in seconds or as a `timedelta`; default: as long as it takes.
        progress: draw on standard error how many have ended.

    Raises:
        InvalidOption: an argument is not valid, or a column is missing or has a name that is added.
        WaitTimeout: some jobs have not ended in time; the message says how many.
        StorageError: the storage is away for over a minute, or refuses.
    """
    jobs = Jobs(check_name(queue, what="queue"), url, check_name(tenant, what="tenant"), id_column)
    timeout_ms = None if timeout is None else duration_ms(timeout, name="timeout")
    if not wait and (timeout is not None or progress):
        raise InvalidOption("timeout and progress are for wait=True")
    if wait and df.isStreaming:
        raise InvalidOption("wait=True is for a DataFrame that ends: a stream has more jobs")
    _check(df, id_column)
    if wait:
        _wait(df, jobs, timeout_ms, is_shown=progress)
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


def _wait(df: DataFrame, jobs: Jobs, timeout_ms: int | None, *, is_shown: bool) -> None:
    """Block until all have ended."""
    until = None if timeout_ms is None else time.monotonic() + timeout_ms / 1000
    table = df.select(F.col(quoted(jobs.id_column)).alias("id")).toArrow()
    ids = table.column("id").drop_null()
    with drawn("Jobs", is_shown=is_shown) as draw:
        _Wait(jobs, ids, draw).run(until)


class _Wait:
    """Waits for the jobs of some ids, 500 after the other: the last to end may be any of them."""

    def __init__(self, jobs: Jobs, ids: pa.ChunkedArray, draw: Draw) -> None:
        self._jobs = jobs
        self._asker = _asker(jobs)
        self._ids = ids
        self._draw = draw
        self._started_at = time.monotonic()

    def run(self, until: float | None) -> None:
        """Block until they have ended.

        Raises:
            WaitTimeout: it is later than that.
        """
        for begin in range(0, len(self._ids), BATCH_LIMIT):
            left = self._ids[begin : begin + BATCH_LIMIT].to_pylist()
            end = begin + len(left)
            pause_s = FIRST_PAUSE_S
            while left := self._unended(left):
                self._draw(end - len(left), len(self._ids))
                if until is not None:
                    if time.monotonic() >= until:
                        raise self._late(len(left) + self._unended_from(end))
                    pause_s = min(pause_s, max(0.0, until - time.monotonic()))
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            self._draw(end, len(self._ids))

    def _unended_from(self, begin: int) -> int:
        return sum(
            len(self._unended(self._ids[first : first + BATCH_LIMIT].to_pylist()))
            for first in range(begin, len(self._ids), BATCH_LIMIT)
        )

    def _unended(self, ids: Sequence[str]) -> list[str]:
        return [end.id for end in _ends(self._asker, self._jobs, ids) if not is_end(end)]

    def _late(self, left: int) -> WaitTimeout:
        jobs, waited_s = self._jobs, time.monotonic() - self._started_at
        return WaitTimeout(
            f"{left:,} of {len(self._ids):,} jobs of queue {jobs.queue!r} have not ended after "
            f"{waited_s:.3g} s: see that workers serve it, and wait again",
            job_id="",
            queue=jobs.queue,
        )


def _asker(jobs: Jobs) -> BlockingAsker:
    return BlockingAsker(storage_of(jobs.url, jobs.tenant), retry_for_s=RETRY_S)


def _ends(asker: BlockingAsker, jobs: Jobs, ids: Sequence[str]) -> list[End]:
    return at_once(asker.ask(partial(asker.storage.outcomes, jobs.queue, ids)))


class _WithOutcomes(Shipped):
    """Adds to each batch what became of its jobs; runs on executors."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        jobs = self._jobs
        asker = _asker(jobs)
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
    ends = iter(_ends(asker, jobs, known) if known else ())
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

"""How many rows a second become jobs: by the commit and by the size of their payloads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.growth.points import Place, Values
from benchmarks.harness import at_least
from benchmarks.spark.frames import PAYLOADS, TASK, TYPICAL, jobs
from benchmarks.spark.parts import Case, Part
from benchmarks.spark.stand import QUEUE, Stand
from headrace.spark import enqueue_dataframe, prepare
from headrace.spark.options import WriteOptions
from headrace.spark.rows import JobRows

COMMITS = ("direct", "atomic")
FILE_PART = 5
"""A directory gets one in so many of the rows."""


def save(stand: Stand, rows: DataFrame, commit: str, *, url: str = "", **options: str) -> None:
    """Write rows to the queue."""
    writer = rows.write.format("headrace").mode("append").option("url", url or stand.url)
    writer.options(queue=QUEUE, commit=commit, **options).save()


def write(commit: str, stand: Stand, *, rows: DataFrame, count: int) -> Values:
    """Write rows to the empty server, and see that all have come."""
    stand.empty()
    values = stand.measured(count, partial(save, stand, rows, commit, task=TASK))
    with stand.queue() as queue:
        assert queue.stats().queued == count
    return values


def write_jobs(commit: str, payload: int, stand: Stand) -> Values:
    """Write rows with payloads of some size."""
    rows = jobs(stand.spark, stand.rows, payload=payload)
    return write(commit, stand, rows=rows, count=stand.rows)


def write_prepared(stand: Stand) -> Values:
    """Write what `prepare` makes of five columns, with ids by the hash of two."""
    number = F.col("id")
    source = stand.spark.range(0, stand.rows, 1, 2).select(
        number.alias("order"),
        F.concat(F.lit("customer "), number % 1000).alias("customer"),
        (number * 0.25).alias("amount"),
        F.timestamp_seconds(number).alias("placed_at"),
        (number % 2 == 0).alias("is_gift"),
    )
    rows = prepare(source, task=TASK, id_from=["order", "customer"])
    stand.empty()
    return stand.measured(stand.rows, partial(save, stand, rows, "direct"))


def write_by_call(stand: Stand) -> Values:
    """Write rows by a call that reports."""
    rows = jobs(stand.spark, stand.rows)
    stand.empty()
    call = partial(enqueue_dataframe, rows, queue=QUEUE, url=stand.url, task=TASK)
    return stand.measured(stand.rows, lambda: call().added)


def write_again(commit: str, stand: Stand) -> Values:
    """Write rows that are all there already."""
    rows = jobs(stand.spark, stand.rows)
    options = {"task": TASK, **({"writeId": "once"} if commit == "atomic" else {})}
    stand.empty()
    save(stand, rows, commit, **options)
    values = stand.measured(stand.rows, partial(save, stand, rows, commit, **options))
    with stand.queue() as queue:
        assert queue.stats().queued == stand.rows
    return values


def write_file(commit: str, stand: Stand) -> Values:
    """Write some of the rows to a directory."""
    count, url = max(1, stand.rows // FILE_PART), f"file://{stand.path('data')}"
    rows = jobs(stand.spark, count)
    values = stand.measured(count, partial(save, stand, rows, commit, url=url, task=TASK))
    with stand.queue(url) as queue:
        assert queue.stats().queued == count
    return values


def make(stand: Stand) -> Values:
    """Make jobs of the rows, and store none: what is left is all that a write can reach."""
    rows = jobs(stand.spark, stand.rows).mapInArrow(only_made, "made long")
    return stand.measured(stand.rows, lambda: rows.agg(F.sum("made")).head()[0])


def only_made(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Count the jobs that rows become; runs on executors."""
    maker = JobRows(WriteOptions(queue=QUEUE, task=TASK))
    for batch in batches:
        made = sum(map(len, maker.calls(batch)))
        yield pa.RecordBatch.from_pydict({"made": [made]})


OF_SIZE = {commit: f"{commit}, {{:,}} B" for commit in COMMITS}
"""The line of each commit."""
CASES: dict[Place, Case] = {
    (OF_SIZE[commit], payload): partial(write_jobs, commit, payload)
    for commit in COMMITS
    for payload in PAYLOADS
}
PART = Part(
    "Writing, rows a second",
    {
        **CASES,
        ("direct, as prepare makes them", 0): write_prepared,
        ("direct, enqueue_dataframe, {} B", TYPICAL): write_by_call,
        ("direct, all are there, {} B", TYPICAL): partial(write_again, "direct"),
        ("atomic, the write is known, {} B", TYPICAL): partial(write_again, "atomic"),
        ("file://, direct, {} B", TYPICAL): partial(write_file, "direct"),
        ("file://, atomic, {} B", TYPICAL): partial(write_file, "atomic"),
        ("made, not stored, {} B", TYPICAL): make,
    },
    goals={
        **{(OF_SIZE["direct"], payload): at_least(150_000) for payload in PAYLOADS[:2]},
        **{(OF_SIZE["atomic"], payload): at_least(100_000) for payload in PAYLOADS[:2]},
    },
)

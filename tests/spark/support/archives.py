"""Archives of events that tests make up."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headrace.spark.pipeline import layout, runs
from headrace.spark.pipeline.runs import Reached, RunDone, RunPlan
from headrace.spark.places import EventOffset

AT = datetime(2026, 1, 31, 2, 30, tzinfo=UTC)
"""When an event happened that says nothing else; in New York it is the evening before."""


def event(kind: str, *, at: datetime = AT, **more: Any) -> Mapping[str, Any]:
    """Return an event of a job of task `mail` in queue `mails`."""
    told = {"tenant": "shop", "queue": "mails", "task": "mail", "job_id": "j1", "start": 0}
    return {**told, "kind": kind, "at": at, **more}


def events_of(spark: SparkSession, events: Iterable[Mapping[str, Any]]) -> DataFrame:
    """Return events as the archive has them, without what their folders are named after."""
    schema = StructType(list(layout.event_schema())[:-2])
    numbered = ({"number": number, **told} for number, told in enumerate(events, 1))
    rows = [tuple(told.get(name) for name in schema.names) for told in numbered]
    return spark.createDataFrame(rows, schema)


def add_run(frame: DataFrame, root: Path, *, run: int) -> None:
    """Write events into an archive as a run of the archiver does, and that it is done."""
    spark = frame.sparkSession
    found = layout.with_partitions(frame, "at", run=run)
    found.write.partitionBy(*layout.PARTITIONS).mode("append").parquet(f"{root}/events")
    last = F.unix_millis(F.max("at")).alias("ms")
    ends = frame.groupBy("tenant", "queue").agg(last, F.max("number").alias("n")).collect()
    for tenant in {end["tenant"] for end in ends}:
        plan = runs.read_state(spark, root, tenant).plan
        reached = {} if plan is None else plan.reached
        places = {
            end["queue"]: Reached(events=EventOffset(f"{end['ms']}-0", end["n"]))
            for end in ends
            if end["tenant"] == tenant
        }
        plan = RunPlan(run=run, first=run, lost=0, parts=[], reached={**reached, **places})
        runs.write(spark, root, tenant, plan)
        runs.write(spark, root, tenant, RunDone(run))


def history(seed: int, begin: datetime, end: datetime, count: int) -> list[Mapping[str, Any]]:
    """Return events in the order in which they happened, the last of each queue at the end.

    Args:
        seed: of what is drawn.
        begin: the first instant.
        end: the last.
        count: how many.
    """
    draw = random.Random(seed)
    ats = sorted(begin + (end - begin) * draw.random() for _ in range(count))
    ats[-2:] = [end, end]
    return [
        event(
            draw.choice(["active", "completed", "retrying"]),
            at=at,
            queue=("a", "b")[number % 2],
            task=draw.choice(["mail", "charge"]),
            start=1,
            run_ms=int(draw.lognormvariate(4, 2)),
            wait_ms=3,
        )
        for number, at in enumerate(ats)
    ]


def archived(spark: SparkSession, root: Path, *runs: Iterable[Mapping[str, Any]]) -> None:
    """Write further runs of events into an archive."""
    for run, events in enumerate(runs, 1 + len(list(root.glob("events/*/*/*/run=*")))):
        add_run(events_of(spark, events).coalesce(1), root, run=run)


def all_kept(spark: SparkSession, root: Path) -> list[Row]:
    """Return the roll-ups of all widths, in a fixed order."""
    found = layout.read_known(spark, f"{root}/rollup", layout.rollup_schema())
    return found.orderBy("width", "tenant", "queue", "task", "bucket").collect()


def counted(root: Path, column: str, *, kind: str = layout.EVENTS) -> Counter[Any]:
    """Return how often each value of a column is there for who reads without Spark."""
    if not any(root.glob(f"{kind}/tenant=*/date=*/hour=*/run=*/*.parquet")):
        return Counter()
    table = ds.dataset(f"{root}/{kind}", partitioning="hive").to_table([column])
    return Counter(table[column].to_pylist())


def add_dead_letters(
    spark: SparkSession, url: str, root: Path, *, run: int = 1, without: Iterable[str] = ()
) -> None:
    """Write the dead letters of all queues into an archive as a run of the archiver does.

    Args:
        spark: a session.
        url: where the queues are.
        root: of the archive.
        run: the number of the run.
        without: columns that its release did not know.
    """
    letters = spark.read.format("headrace").options(url=url, read="dead", queue="*").load()
    letters = letters.drop(*without)
    found = layout.with_partitions(letters, "ended_at", run=run)
    found.write.partitionBy(*layout.PARTITIONS).mode("append").parquet(f"{root}/dead")

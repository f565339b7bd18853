"""Archives of events that tests make up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
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


def add_dead_letters(spark: SparkSession, url: str, root: Path, *, run: int = 1) -> None:
    """Write the dead letters of all queues into an archive as a run of the archiver does."""
    letters = spark.read.format("headrace").options(url=url, read="dead", queue="*").load()
    found = layout.with_partitions(letters, "ended_at", run=run)
    found.write.partitionBy(*layout.PARTITIONS).mode("append").parquet(f"{root}/dead")

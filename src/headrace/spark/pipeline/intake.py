"""What a run of the archive reads from the queues and adds to the files.

Files are added under the number of the run, and none is ever written over. A run that goes on with
one that was cut off reads what that one has left, and adds what is not among it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import msgspec
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from headrace.job import JobState
from headrace.spark.pipeline import layout
from headrace.spark.pipeline.runs import Part, RunPlan

_KEYS = {
    layout.EVENTS: "queue string, stream_id string, number long",
    layout.DEAD: "queue string, cursor string",
}
"""What tells each event, and each end of a dead letter, from the others of its tenant."""

EVENTS_A_TASK = 250_000
"""About how many events a task of Spark reads, where there are more."""

_HAPPENED = {layout.EVENTS: "at", layout.DEAD: "ended_at"}


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has added.

    Attributes:
        events: how many events.
        dead_letters: how many dead letters.
        missing: how many events of the plan are not in the archive, since they were trimmed.
    """

    events: int
    dead_letters: int
    missing: int


class Intake:
    """Reads from the queues of a tenant, and adds to its files.

    Args:
        spark: a session.
        root: where the archive is.
        url: where the queues are; "": as the environment of each process says.
        tenant: whose.
    """

    def __init__(
        self, spark: SparkSession, root: str | os.PathLike[str], *, url: str, tenant: str
    ) -> None:
        self._spark = spark
        self._root = root
        self._options = {"tenant": tenant, **({"url": url} if url else {})}
        self._tenant = tenant

    def take_in(self, plan: RunPlan) -> Taken:
        """Add what is missing of a plan."""
        newer = [part for part in plan.parts if part.start.events != part.end.events]
        planned = sum(max(0, part.end.events.n - part.start.events.n) for part in newer)
        there = events = 0
        if newer:
            there, events = self._add(layout.EVENTS, plan, self._events(newer, planned))
        deader = [part for part in plan.parts if part.start.dead != part.end.dead]
        _, dead = self._add(layout.DEAD, plan, self._dead_letters(deader)) if deader else (0, 0)
        missing = max(0, planned - there - events)
        return Taken(events=events, dead_letters=dead, missing=missing)

    def _events(self, parts: Sequence[Part], count: int) -> DataFrame:
        tasks = {"minPartitions": str(-(-count // EVENTS_A_TASK))} if count > EVENTS_A_TASK else {}
        return self._read(
            parts,
            {part.queue: part.start.events for part in parts},
            {part.queue: part.end.events for part in parts},
            read="events",
            failOnDataLoss="false",  # what is missing is counted, with what is there already
            **tasks,
        )

    def _dead_letters(self, parts: Sequence[Part]) -> DataFrame:
        state = JobState.FAILED.value
        return self._read(
            parts,
            {part.queue: {state: part.start.dead} for part in parts},
            {part.queue: {state: part.end.dead} for part in parts},
            read="dead",
        )

    def _read(
        self, parts: Sequence[Part], starts: dict[str, Any], ends: dict[str, Any], **options: str
    ) -> DataFrame:
        reader = self._spark.read.format("headrace").options(
            **self._options,
            **options,
            queue=",".join(part.queue for part in parts),
            startingOffsets=msgspec.json.encode(starts).decode(),
            endingOffsets=msgspec.json.encode(ends).decode(),
        )
        return reader.load()

    def _add(self, kind: str, plan: RunPlan, rows: DataFrame) -> tuple[int, int]:
        """Add rows that are not there; return how many were there, and how many are new."""
        there = self._left(kind, plan)
        count = 0
        if there is not None:
            count = there.count()
            rows = rows.join(there, there.columns, "left_anti")
        seen = Observation()
        rows = layout.with_partitions(rows, _HAPPENED[kind], run=plan.run).drop("tenant")
        rows = rows.observe(seen, F.count(F.lit(1)).alias("rows"))
        # Overwriting partitions makes Spark prepare the files in a place that no other try has
        # used. The partitions are this run's own, and are not there yet.
        writer = rows.write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
        writer.partitionBy(*layout.PARTITIONS[1:]).parquet(self._path(kind))
        return count, seen.get["rows"]

    def _left(self, kind: str, plan: RunPlan) -> DataFrame | None:
        """Return the keys of what earlier tries of a plan have added; None for nothing."""
        if plan.run == plan.first:
            return None
        tries = ",".join(str(run) for run in range(plan.first, plan.run))
        path = f"{self._path(kind)}/date=*/hour=*/run={{{tries}}}"
        reader = self._spark.read.schema(_KEYS[kind]).options(recursiveFileLookup=True)
        return layout.if_there(lambda: reader.parquet(path))

    def _path(self, kind: str) -> str:
        return layout.path_of(self._root, kind, f"tenant={self._tenant}")

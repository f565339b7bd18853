"""How many events, ended jobs and results a second are read, and how many events are archived."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from benchmarks.growth.caller import calling
from benchmarks.growth.points import Values
from benchmarks.growth.workload import GrowthLoad
from benchmarks.harness import at_least
from benchmarks.spark.parts import Part
from benchmarks.spark.stand import CORES, QUEUE, Stand
from headrace.job import ErrorInfo, FailReason
from headrace.outcome import Failed
from headrace.spark import results
from headrace.spark.pipeline import archive

DONE_PART, DEAD_PART = 5, 50
"""One in so many rows is a job that has completed, or failed."""
EVENTS_A_JOB = 3
"""It was queued, was started, and has ended."""
EVENTS_OF_THE_CALLER = 2
"""It came and went."""
TRIGGERS = (100_000, 50_000)
"""Events at most."""
DEAD = Failed(FailReason.EXHAUSTED, ErrorInfo("ValueError", "no address", "line\n" * 20))


def load(stand: Stand) -> None:
    """Let jobs be worked off on the empty server, so that there is something to read."""
    stand.empty()

    async def run() -> None:
        load = GrowthLoad(stand.url)
        async with load.app, calling(load) as caller:
            await caller.run(done(stand))
            await caller.run(dead(stand), DEAD)

    asyncio.run(run())


def done(stand: Stand) -> int:
    """Return how many jobs have completed."""
    return stand.rows // DONE_PART


def dead(stand: Stand) -> int:
    """Return how many jobs have failed."""
    return stand.rows // DEAD_PART


def events(stand: Stand) -> int:
    """Return how many events there are."""
    return EVENTS_A_JOB * (done(stand) + dead(stand)) + EVENTS_OF_THE_CALLER


def read(stand: Stand, **options: Any) -> DataFrame:
    """Return what is there."""
    return stand.spark.read.format("headrace").options(url=stand.url, queue=QUEUE, **options).load()


def pass_over(rows: DataFrame) -> None:
    """Compute all columns of all rows."""
    rows.write.format("noop").mode("overwrite").save()


def count_events(parts: int, stand: Stand) -> Values:
    """Count the events, which are read for it."""
    return stand.measured(events(stand), read(stand, minPartitions=parts).count)


def read_events(parts: int, stand: Stand) -> Values:
    """Read all columns of all events."""
    return stand.measured(events(stand), lambda: pass_over(read(stand, minPartitions=parts)))


def drain(most: int, stand: Stand) -> Values:
    """Bring a stream of events into Parquet files, so many a micro-batch; 0: all at once."""
    source = stand.spark.readStream.format("headrace").options(url=stand.url, queue=QUEUE)
    limit = {"maxEventsPerTrigger": most} if most else {}
    path = stand.path("events")
    rows = source.options(startingOffsets="earliest", **limit).load()
    sink = rows.writeStream.format("parquet").option("checkpointLocation", stand.path("checkpoint"))

    def run() -> None:
        sink.trigger(availableNow=True).start(path).awaitTermination()

    values = stand.measured(events(stand), run)
    assert stand.spark.read.parquet(path).count() == events(stand)
    return values


def archive_all(stand: Stand) -> Values:
    """Bring all events and dead letters into a new archive."""
    root = stand.path("archive")
    reader = root.rpartition("/")[2]
    run = partial(archive, stand.spark, root, queues=[QUEUE], url=stand.url, reader=reader)
    return stand.measured(events(stand), lambda: run().events)


def read_jobs(stand: Stand) -> Values:
    """Read all columns of all jobs that have completed."""
    return stand.measured(
        done(stand), lambda: pass_over(read(stand, read="jobs", states="completed"))
    )


def read_dead(stand: Stand) -> Values:
    """Read all columns of all dead letters."""
    return stand.measured(dead(stand), lambda: pass_over(read(stand, read="dead")))


def read_results(stand: Stand) -> Values:
    """Join what became of jobs to rows with their ids."""
    ids = read(stand, read="jobs", states="completed").selectExpr("job_id AS id")
    ids = ids.repartition(CORES).localCheckpoint()
    return stand.measured(done(stand), lambda: pass_over(results(ids, queue=QUEUE, url=stand.url)))


ALL_COLUMNS = "events, all columns, partitions: {}"
PART = Part(
    "Reading: events, jobs or results a second",
    {
        **{(ALL_COLUMNS, parts): partial(read_events, parts) for parts in (CORES, 1)},
        ("events, counted, partitions: {}", CORES): partial(count_events, CORES),
        ("stream to Parquet, all at once", 0): partial(drain, 0),
        **{("stream to Parquet, {:,} a trigger", most): partial(drain, most) for most in TRIGGERS},
        ("archive, with dead letters", 0): archive_all,
        ("completed jobs, all columns", 0): read_jobs,
        ("dead letters, all columns", 0): read_dead,
        ("results of ids", 0): read_results,
    },
    prepare=load,
    goals={(ALL_COLUMNS, CORES): at_least(150_000)},
    rounds=2,
)

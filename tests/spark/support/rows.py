"""Frames of numbered rows, and how often each row is in a queue."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.streaming import DataStreamWriter

from headrace import App
from headrace.app import clients_of
from headrace.spark.source import register
from headrace.testing.contract.steps import QUEUE, ContractIncarnation

TASK = "load"


def numbered(
    spark: SparkSession,
    rows: int,
    *,
    partitions: int = 2,
    has_ids: bool = False,
    padding: int = 0,
) -> DataFrame:
    """Return rows to write: the number is in the arguments, and with ids in these too.

    Args:
        spark: the session.
        rows: how many.
        partitions: of the frame.
        has_ids: whether there is a column of ids; else random ones are drawn.
        padding: how many characters the arguments are longer.
    """
    number = functions.col("id")
    arguments = [number.alias("row")]
    if padding:
        arguments.append(functions.lit("x" * padding).alias("padding"))
    payload = functions.to_json(functions.struct(*arguments)).alias("payload")
    ids = [functions.format_string("row-%d", number).alias("id")] if has_ids else []
    return spark.range(0, rows, 1, partitions).select(*ids, payload)


def save(frame: DataFrame, url: str, **options: Any) -> None:
    """Write rows as jobs by the data source, in any thread."""
    register(frame.sparkSession)
    chosen = {"url": url, "queue": QUEUE, "task": TASK, **options}
    frame.write.format("headrace").mode("append").options(**chosen).save()


def to_jobs(stream: DataFrame, url: str, **options: Any) -> DataStreamWriter:
    """Return what writes a stream of rows as jobs by the data source."""
    chosen = {"url": url, "queue": QUEUE, "task": TASK, **options}
    return stream.writeStream.format("headrace").options(**chosen)


async def queued(url: str, *, tenant: str = "default") -> int:
    """Return how many jobs wait in the queue."""
    async with App(url, tenant=tenant) as app:
        return (await app.queue(QUEUE).stats()).queued


async def take_rows(url: str, *, tenant: str = "default") -> Counter[int]:
    """Claim all jobs of the queue, and return how often each row was there."""
    found: Counter[int] = Counter()
    async with App(url, tenant=tenant) as app:
        worker = await ContractIncarnation(clients_of(app).current().storage, "taker").register()
        while jobs := await worker.claim():
            found.update(msgspec.json.decode(job.payload)["row"] for job in jobs)
    return found


def once(rows: int) -> Counter[int]:
    """Return each row once."""
    return Counter(range(rows))

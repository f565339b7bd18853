"""The rows that are written: jobs with ids of their own and payloads of some size."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.spark.stand import CORES

PAYLOADS = (9, 64, 85, 500)
"""Bytes: up to 64 they lie in the record, longer ones have a key of their own."""
TYPICAL = 64
TASK = "noop"


def jobs(
    spark: SparkSession, rows: int, *, payload: int = TYPICAL, partitions: int = CORES
) -> DataFrame:
    """Return rows that can be written; the JVM makes them while they are.

    Args:
        spark: the session.
        rows: how many.
        payload: its size in bytes, of `PAYLOADS`.
        partitions: of the rows.
    """
    ending = ',"text":"%s"}' if payload >= TYPICAL else "%s}"
    begin, number = '{"x":', (100 + F.col("id") % 900).cast("string")
    filling = "." * (payload - len(f"{begin}100{ending % ''}"))
    return spark.range(0, rows, 1, partitions).select(
        F.concat(F.lit("order:"), F.lpad(F.col("id").cast("string"), 12, "0")).alias("id"),
        F.concat(F.lit(begin), number, F.lit(ending % filling)).alias("payload"),
    )

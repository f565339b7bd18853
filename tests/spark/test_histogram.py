"""Times counted in buckets give percentiles that are within 1 % of the exact ones."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace.spark.pipeline import histogram

pytestmark = pytest.mark.usefixtures("compiled")

SHARES = (0.0, 0.01, 0.5, 0.95, 0.99, 1.0)


def exact(times: Sequence[int], share: float) -> int:
    return sorted(times)[max(1, math.ceil(len(times) * share)) - 1]


def counted(frame: DataFrame) -> DataFrame:
    """Return a histogram for each name."""
    buckets = frame.groupBy("name", histogram.bucket_of(F.col("ms")).alias("bucket")).count()
    whole = histogram.collected(F.col("bucket"), F.col("count"))
    return buckets.groupBy("name").agg(whole.alias("histogram"))


def percentiles(spark: SparkSession, samples: dict[str, Sequence[int]]) -> dict[str, list[float]]:
    rows = [(name, ms) for name, times in samples.items() for ms in times]
    frame = counted(spark.createDataFrame(rows, "name string, ms long"))
    shares = [histogram.percentile_ms(F.col("histogram"), share) for share in SHARES]
    found = frame.select("name", F.array(*shares).alias("shares")).collect()
    return {row["name"]: row["shares"] for row in found}


def test_percentiles_are_within_one_percent_of_the_exact_ones(spark: SparkSession) -> None:
    draw = random.Random(16)
    samples: dict[str, Sequence[int]] = {
        "every small one": range(3000),
        "one": [7],
        "none took time": [0] * 5,
        "few took time": [0] * 98 + [3, 90_000],
        "days": [draw.randrange(3_600_000, 900_000_000) for _ in range(500)],
        "two peaks": [1] * 950 + [1_000_000] * 50,
        "heavy tail": [int(draw.paretovariate(0.6) * 3) for _ in range(4000)],
        "log-normal": [int(draw.lognormvariate(4, 2)) for _ in range(4000)],
        "powers of two": [2**n for n in range(40)],
    }
    found = percentiles(spark, samples)
    assert set(found) == set(samples)
    for name, times in samples.items():
        for share, value in zip(SHARES, found[name], strict=True):
            assert value == pytest.approx(exact(times, share), rel=0.01), (name, share)


def test_the_middle_of_a_bucket_is_within_one_percent_of_all_that_is_in_it(
    spark: SparkSession,
) -> None:
    ms = F.col("id")
    middle = histogram.middle_ms(histogram.bucket_of(ms))
    worst = F.max(F.abs(middle - ms) / F.greatest(ms, F.lit(1)))
    [[found]] = spark.range(0, 200_000, 1).select(worst).collect()
    assert 0.009 < found < 0.01


def test_nothing_measured_has_no_percentiles(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("a", None)], "name string, ms long")
    [row] = (
        counted(frame)
        .select("histogram", histogram.percentile_ms(F.col("histogram"), 0.5).alias("half"))
        .collect()
    )
    assert (row["histogram"], row["half"]) == ({}, None)


def test_a_histogram_is_the_same_whatever_the_order_of_the_rows(spark: SparkSession) -> None:
    times = [random.Random(3).randrange(100_000) for _ in range(500)]
    frames = [
        spark.createDataFrame([("a", ms) for ms in some], "name string, ms long").repartition(parts)
        for some, parts in ((times, 1), (times[::-1], 5))
    ]
    first, second = [counted(frame).collect()[0]["histogram"] for frame in frames]
    assert list(first.items()) == list(second.items()) == sorted(first.items())

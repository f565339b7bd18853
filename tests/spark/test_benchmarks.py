"""The benchmarks of the Spark bridge: each case runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from pyspark.sql import SparkSession

from benchmarks.spark import growth, pipeline, reads, writes
from benchmarks.spark.parts import Part, measured
from benchmarks.spark.stand import RATE, Stand
from tests.support.redis_server import RedisServer

ROWS = 1_000


@pytest.fixture
def stand(spark: SparkSession, redis_server: RedisServer, tmp_path: Path) -> Stand:
    return Stand(spark, redis_server, tmp_path, rows=ROWS)


@pytest.mark.parametrize(
    "part", [writes.PART, reads.PART, pipeline.PART], ids=["writes", "reads", "pipeline"]
)
def test_every_case_brings_its_rows(part: Part, stand: Stand) -> None:
    points = measured(stand, part, rounds=1)
    assert [(point.line, point.size) for point in points] == list(part.cases)
    assert all(point.median(RATE) > 0 for point in points)


@pytest.mark.parametrize("part_of", [growth.by_rows, growth.by_partitions])
def test_growth_is_measured_in_writing_and_in_reading(
    part_of: Callable[[int], Part], stand: Stand
) -> None:
    part = part_of(ROWS)
    smallest = min(size for _, size in part.cases)
    cases = {place: case for place, case in part.cases.items() if place[1] == smallest}
    for point in measured(stand, replace(part, cases=cases), rounds=1):
        assert point.median(RATE) > 0
        assert point.median(growth.READ) > 0


def test_the_p99_of_roll_ups_is_within_one_percent(stand: Stand) -> None:
    points = measured(stand, pipeline.ACCURACY, rounds=1)
    assert all(point.median(pipeline.BUCKETS) > 0 for point in points)
    assert max(point.median(pipeline.WORST) for point in points) <= 1.0

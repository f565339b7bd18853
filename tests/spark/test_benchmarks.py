"""The benchmarks of the Spark bridge: each case runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.spark import reads, writes
from benchmarks.spark.parts import Part, measured
from benchmarks.spark.stand import RATE, Stand
from tests.support.redis_server import RedisServer

ROWS = 1_000


@pytest.fixture
def stand(spark: SparkSession, redis_server: RedisServer, tmp_path: Path) -> Stand:
    return Stand(spark, redis_server, tmp_path, rows=ROWS)


@pytest.mark.parametrize("part", [writes.PART, reads.PART], ids=["writes", "reads"])
def test_every_case_brings_its_rows(part: Part, stand: Stand) -> None:
    points = measured(stand, part, rounds=1)
    assert [(point.line, point.size) for point in points] == list(part.cases)
    assert all(point.median(RATE) > 0 for point in points)

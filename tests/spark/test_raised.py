"""An error of ours that Spark wraps is itself again on the driver."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headrace.errors import InvalidRows, StorageUnavailable, WaitTimeout
from headrace.spark import prepare
from headrace.spark.raised import as_raised, raised_inside


def test_what_an_expression_has_raised(spark: SparkSession) -> None:
    df = spark.sql("select 'a' as id, double('NaN') as x")
    with (
        pytest.raises(InvalidRows, match=r"^column 'x' .* of id 'a': make it null or text$"),
        as_raised(),
    ):
        prepare(df, id="id").collect()


def test_what_a_process_of_sparks_has_raised(spark: SparkSession) -> None:
    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        raise StorageUnavailable("it is away: start it") from InvalidRows("not this one")

    with pytest.raises(StorageUnavailable, match="it is away: start it") as caught, as_raised():
        spark.range(2).mapInArrow(fail, "id long").collect()
    assert isinstance(caught.value.__cause__, PySparkException)


def test_errors_of_others_stay(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="mine"), as_raised():
        spark.range(1).select(F.raise_error(F.lit("mine"))).collect()
    with pytest.raises(WaitTimeout), as_raised():
        raise WaitTimeout("late", job_id="", queue="q")
    quoting = "Traceback (most recent call last):\nValueError: headrace.errors.InvalidRows: x"
    assert raised_inside(PySparkException(quoting)) is None

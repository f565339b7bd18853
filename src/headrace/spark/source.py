"""The data source ``headrace``: jobs are written, and events and ended jobs are read."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource


class HeadraceDataSource(DataSource):
    """The data source ``headrace``, see the guide on Spark."""

    @classmethod
    def name(cls) -> str:
        """Return what stands in ``format(...)``."""
        return "headrace"


def register(spark: SparkSession) -> None:
    """Make ``format("headrace")`` known to a session that has not found it by itself.

    Spark registers it in every session where the package is installed beside pyspark.
    """
    spark.dataSource.register(HeadraceDataSource)

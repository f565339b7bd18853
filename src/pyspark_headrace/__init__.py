"""Where Spark finds the data source `headrace` by itself.

It imports every package that is called ``pyspark_*`` and registers its ``DefaultSource``, so that
``spark.read.format("headrace")`` works without a call of `headrace.spark.register`.
"""

from headrace.spark.source import HeadraceDataSource as DefaultSource

__all__ = ["DefaultSource"]

"""Where Spark finds the data source `headrace` by itself.

It imports every package that is called ``pyspark_*`` and registers its ``DefaultSource``, so that
``spark.read.format("headrace")`` works without a call of `headrace.spark.register`. It does so in
each session, also of people who use another source; and where one of these packages can't be
imported, it finds no source in Python at all. So what is missing is said by the source itself, to
those who use it.
"""

__all__: list[str] = []

try:
    from headrace.spark.source import HeadraceDataSource as DefaultSource
except ImportError:  # by Spark's rule a package without a source is passed over
    pass
else:
    __all__ += ["DefaultSource"]

"""Times counted in buckets that can be merged: a map of bucket to count, and its percentiles.

A bucket is 2 % wide, so its middle is within 1 % of every time in it. All is done by expressions of
Spark: the Python of executors is not asked.
"""

from __future__ import annotations

import math

from pyspark.sql import Column
from pyspark.sql import functions as F

RATIO = 1.02
"""How much longer the times of a bucket are than those of the one before."""

NO_TIME = -1
"""The bucket of what took less than half a millisecond, and is stored as 0."""


def bucket_of(ms: Column) -> Column:
    """Return the bucket of a time in whole milliseconds; null of none."""
    nth = F.floor(F.ln(ms) / math.log(RATIO)).cast("int")
    return F.when(ms > 0, nth).when(ms <= 0, F.lit(NO_TIME))


def middle_ms(bucket: Column) -> Column:
    """Return the time that stands for a bucket, in milliseconds: the geometric middle."""
    middle = F.pow(F.lit(RATIO), bucket + 0.5)
    return F.when(bucket == NO_TIME, F.lit(0.0)).otherwise(middle)


def collected(bucket: Column, count: Column) -> Column:
    """Aggregate rows of one bucket each into a histogram, in the order of the buckets.

    Args:
        bucket: of a row; rows with null are passed over. No two rows of a group may have the same.
        count: how many times are in it.
    """
    entry = F.struct(bucket.alias("bucket"), count.alias("count"))
    return F.map_from_entries(F.array_sort(F.collect_list(F.when(bucket.isNotNull(), entry))))


def count_over(histogram: Column, ms: Column) -> Column:
    """Return how many times of a histogram are longer than that, by the middles of buckets."""
    longer = F.map_filter(histogram, lambda bucket, _count: middle_ms(bucket) > ms)
    return _total(F.map_values(longer))


def percentile_ms(histogram: Column, share: float) -> Column:
    """Return the time at ``share`` by nearest rank, within 1 %; null where nothing was counted.

    The nearest rank is that of the least time that at least this share of all times does not
    exceed, as in ``percentile_disc``.

    Args:
        histogram: bucket to how many times are in it, in any order.
        share: 0 to 1, as in 0.95.
    """
    never, no_bucket = F.lit(0).cast("long"), F.lit(None).cast("int")
    rank = F.greatest(F.ceil(_total(F.map_values(histogram)) * share), F.lit(1))
    # It stands in what is carried along, or each step would work it out anew.
    start = F.struct(rank.alias("rank"), never.alias("below"), no_bucket.alias("bucket"))

    def climb(reached: Column, entry: Column) -> Column:
        rank, below = reached["rank"], reached["below"]
        higher = F.struct(
            rank.alias("rank"),
            (below + entry["value"]).alias("below"),
            entry["key"].alias("bucket"),
        )
        return F.when(below >= rank, reached).otherwise(higher)

    entries = F.array_sort(F.map_entries(histogram))
    return F.aggregate(entries, start, climb, lambda reached: middle_ms(reached["bucket"]))


def _total(counts: Column) -> Column:
    return F.aggregate(counts, F.lit(0).cast("long"), lambda total, count: total + count)

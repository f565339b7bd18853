"""Percentiles of the duration histograms in `QueueCounts`. Pure arithmetic, no I/O."""

from __future__ import annotations

import math
from collections.abc import Mapping


def percentile(histogram: Mapping[int, int], share: float) -> int | None:
    """Return the bound of the bucket that holds the value at ``share``, None of an empty one.

    Args:
        histogram: upper bound of each bucket to how many values fell in it, in any order.
        share: 0 to 1, as in 0.95.
    """
    total = sum(histogram.values())
    # Nearest rank: the smallest bound that at least this many values do not exceed.
    rank = max(1, math.ceil(share * total))
    below = 0
    for bound, count in sorted(histogram.items()):
        below += count
        if count and below >= rank:
            return bound
    return None

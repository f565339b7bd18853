"""What a queue has done over time: counted in spans of ten seconds, and read for a window."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter, defaultdict
from functools import lru_cache

from headrace.storage.limits import STATS_BUCKET_MS, STATS_BUCKETS, STATS_TTL_MS

_ADD = """
INSERT INTO stats (queue, bucket_ms, field, n) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET n = n + excluded.n
"""
_FORGET = "DELETE FROM stats WHERE queue = ? AND bucket_ms < ?"
_READ = "SELECT field, n FROM stats WHERE queue = ? AND bucket_ms > ? AND bucket_ms <= ?"


class Stats:
    """What one call counts for the statistics."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: defaultdict[str, int] = defaultdict(int)

    def tally(self, field: str, n: int = 1) -> None:
        """Count what happened."""
        self._counts[field] += n

    def observe(self, name: str, value_ms: int) -> None:
        """Put a duration in its bucket."""
        self._counts[f"{name}:{bucket_bound(value_ms)}"] += 1

    def write(self, db: sqlite3.Connection, queue: int, *, now_ms: int) -> None:
        """Add what was counted to the present span, and forget what is too old."""
        if not self._counts:
            return
        bucket_ms = now_ms - now_ms % STATS_BUCKET_MS
        db.executemany(_ADD, [(queue, bucket_ms, field, n) for field, n in self._counts.items()])
        db.execute(_FORGET, (queue, now_ms - STATS_TTL_MS))


def window_ms(now_ms: int) -> int:
    """Return how long the window is that `read` tells of: its last span is not over yet."""
    return (STATS_BUCKETS - 1) * STATS_BUCKET_MS + now_ms % STATS_BUCKET_MS


def read(db: sqlite3.Connection, queue: int, *, now_ms: int) -> Counter[str]:
    """Return what was counted within the window."""
    last = now_ms - now_ms % STATS_BUCKET_MS
    found: Counter[str] = Counter()
    for field, n in db.execute(_READ, (queue, last - STATS_BUCKETS * STATS_BUCKET_MS, last)):
        found[field] += n
    return found


def histogram(counts: Counter[str], name: str) -> dict[int, int]:
    """Return how many durations of a name fell in each bucket, by the bucket's upper bound."""
    start = len(name) + 1
    found = {int(field[start:]): n for field, n in counts.items() if field.startswith(f"{name}:")}
    return dict(sorted(found.items()))


@lru_cache(maxsize=10_000)
def bucket_bound(value_ms: int) -> int:
    """Return the upper bound of a bucket that grows by a tenth."""
    if value_ms <= 0:
        return 0
    exponent = math.ceil(math.log(value_ms) / math.log(1.1) - 1e-9)
    return math.ceil(1.1**exponent)

"""How rates change with the rows of a write, and with its partitions."""

from __future__ import annotations

from functools import partial

from benchmarks.growth.points import Values
from benchmarks.spark.frames import jobs
from benchmarks.spark.parts import Part
from benchmarks.spark.reads import pass_over, read
from benchmarks.spark.stand import CORES, RATE, Stand
from benchmarks.spark.writes import COMMITS, write

PERCENT = (10, 20, 40, 100, 200)
"""Rows, of those of a case: 50,000 to a million of 500,000."""
PARTITIONS = (1, 2, 4, 8, 32)
SHARED = 40
"""Rows in percent that so many partitions share."""
READ = "events read a second"
BY_ROWS = {commit: f"{commit}, rows: {{:,}}" for commit in COMMITS}
BY_PARTITIONS = {commit: f"{commit}, partitions: {{}}" for commit in COMMITS}
"""The line of each commit."""


def write_and_read(commit: str, count: int, stand: Stand, *, partitions: int = CORES) -> Values:
    """Write so many rows, then read the event that each has made."""
    rows = jobs(stand.spark, count, partitions=partitions)
    written = write(commit, stand, rows=rows, count=count)
    events = read(stand, minPartitions=partitions)
    return {**written, READ: stand.measured(count, partial(pass_over, events))[RATE]}


def by_rows(rows: int) -> Part:
    """Return writes of fewer rows and of more.

    Args:
        rows: of a case.
    """
    counts = [rows * percent // 100 for percent in PERCENT]
    cases = {
        (line, count): partial(write_and_read, commit, count)
        for commit, line in BY_ROWS.items()
        for count in counts
    }
    return Part("More rows, 64 B each", cases, rounds=1)


def by_partitions(rows: int) -> Part:
    """Return writes of the same rows in fewer partitions and in more.

    Args:
        rows: of a case.
    """
    count = rows * SHARED // 100
    cases = {
        (line, partitions): partial(write_and_read, commit, count, partitions=partitions)
        for commit, line in BY_PARTITIONS.items()
        for partitions in PARTITIONS
    }
    return Part(f"More partitions of {count:,} rows", cases, rounds=1)

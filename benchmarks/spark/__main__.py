"""What the Spark bridge does a second, what it costs, and how that grows: all parts, or some.

python -m benchmarks.spark [--rows N] [--rounds N] [--write] [PART…]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from benchmarks.environments import DEVELOPMENT
from benchmarks.growth.points import Part as Measured
from benchmarks.harness import machine
from benchmarks.report import machine_line
from benchmarks.spark import counts, growth, pipeline, plots, reads, results, writes
from benchmarks.spark.parts import Part, measured
from benchmarks.spark.stand import standing

ROWS = 500_000
ROUNDS = 3
LEAST_ROWS = 1_000


def parts(rows: int) -> dict[str, Part]:
    """Return all parts by their names.

    Args:
        rows: of a case.
    """
    return {
        "writes": writes.PART,
        "reads": reads.PART,
        "rows": growth.by_rows(rows),
        "partitions": growth.by_partitions(rows),
        "pipeline": pipeline.PART,
        "accuracy": pipeline.ACCURACY,
        "instructions": counts.PART,
    }


def main() -> int:
    """Measure, print the tables, and keep the results; 2 for arguments that mean nothing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="all, if none is named")
    parser.add_argument("--rows", type=int, default=ROWS, help="of a case (%(default)s)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="at most (%(default)s)")
    parser.add_argument(
        "--write", action="store_true", help="put the run into the README, and draw the plot"
    )
    asked = parser.parse_args()
    known = parts(asked.rows)
    unknown = [name for name in asked.parts if name not in known]
    if unknown:
        parser.error(f"no part {', '.join(unknown)}: use {', '.join(known)}")
    if asked.write and asked.parts:
        parser.error("--write takes a full run: name no part with it")
    if asked.rows < LEAST_ROWS:
        parser.error(
            f"--rows {asked.rows} are too few for a part of them: use {LEAST_ROWS} or more"
        )
    run(known, asked.parts or list(known), asked)
    return 0


def run(known: Mapping[str, Part], names: Sequence[str], asked: argparse.Namespace) -> None:
    """Measure parts one after another."""
    about = {**machine(DEVELOPMENT), **DEVELOPMENT.versions("pyspark", "pyarrow")}
    day = datetime.now(UTC).date().isoformat()
    texts = [f"Measured on {day}, {asked.rows:,} rows: {machine_line(about)}."]
    print(texts[0])
    found = {}
    with standing(asked.rows) as stand:
        for name in names:
            part = known[name]
            points = measured(stand, part, rounds=asked.rounds)
            found[name] = Measured(part.title, day, about, points)
            texts += [f"### {part.title}", results.table_of(part, points)]
            print("", *texts[-2:], sep="\n\n", flush=True)
    results.save(found)
    if asked.write:
        results.write(texts)
        plots.draw({name: part.points for name, part in found.items()})


if __name__ == "__main__":
    sys.exit(main())

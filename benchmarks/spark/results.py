"""The results of a run: a file that keeps them, tables, and a section of the README."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from benchmarks import report
from benchmarks.growth.points import Part as Measured
from benchmarks.growth.points import Point
from benchmarks.harness import RESULTS, shown
from benchmarks.spark.parts import Part

FILE = RESULTS.with_name("spark.json")
SECTION = "spark"


def save(measured: Mapping[str, Measured]) -> None:
    """Keep the results of a run."""
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(measured)))


def write(texts: Sequence[str]) -> None:
    """Put a run into the README.

    Raises:
        MarkerError: the README has no marks for it.
    """
    report.replace_section(report.README, SECTION, "\n\n".join(texts))


def table_of(part: Part, points: Sequence[Point]) -> str:
    """Return a part's table in Markdown: medians, and of the main value the runs and the goals."""
    heads = [""]
    for name in points[0].runs:
        heads += [name, "runs", "goal"] if name == part.main else [name]
    return report.table(heads, [_cells(part, point) for point in points])


def _cells(part: Part, point: Point) -> list[str]:
    cells = [point.line.format(point.size)]
    for name, runs in point.runs.items():
        median = point.median(name)
        cells.append(shown(median))
        if name == part.main:
            goal = part.goals.get((point.line, point.size))
            verdict = f"{goal}, {'met' if goal.is_met(median) else 'missed'}" if goal else ""
            cells += [f"{shown(min(runs))} to {shown(max(runs))}", verdict]
    return cells

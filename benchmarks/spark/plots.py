"""One picture of how rates change with what is written: a panel each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks import report
from benchmarks.growth.plots import Line, draw_lines
from benchmarks.growth.points import Point
from benchmarks.spark import growth, writes
from benchmarks.spark.stand import RATE

FILE = report.PLOTS / "spark.svg"
COLUMNS = 2
INCHES = 9.2, 8.4
PANELS = [
    ("writes", "bytes of a payload", "rows written a second", writes.OF_SIZE, RATE),
    ("rows", "rows", "rows written a second", growth.BY_ROWS, RATE),
    ("partitions", "partitions", "rows written a second", growth.BY_PARTITIONS, RATE),
    ("rows", "events", "events read a second", growth.BY_ROWS, growth.READ),
    ("partitions", "partitions", "events read a second", growth.BY_PARTITIONS, growth.READ),
]
"""Part, what is on the abscissa, title, the lines by their labels, and what is drawn of them."""


def draw(measured: Mapping[str, Sequence[Point]]) -> None:
    """Write the picture of a whole run.

    Args:
        measured: the points of each part.
    """
    rows = -(-len(PANELS) // COLUMNS)
    with report.plot(FILE, rows=rows, columns=COLUMNS, inches=INCHES) as grid:
        for axes, (part, size, title, lines, what) in zip(grid, PANELS, strict=False):
            axes.set_title(title, fontsize=10, loc="left")
            axes.spines[["top", "right"]].set_visible(False)
            draw_lines(axes, size, _lines(measured[part], lines, what))
        for axes in grid[len(PANELS) :]:
            axes.set_visible(False)


def _lines(points: Sequence[Point], lines: Mapping[str, str], what: str) -> list[Line]:
    return [
        (label, what, [point for point in points if point.line == line])
        for label, line in lines.items()
    ]

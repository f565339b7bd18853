"""One picture of all parts: a panel each, with the medians and the ranges of the runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks import report
from benchmarks.growth import backlog, memory
from benchmarks.growth.draining import RATE
from benchmarks.growth.points import Part, Point
from benchmarks.growth.sweeps import DRAINED_MB, ENQUEUED_MB

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FILE = report.PLOTS / "growth.svg"
COLUMNS = 2
PANEL_INCHES = 4.6, 2.8
PANELS = [
    ("backlog", "Redis time a job, µs", [backlog.TOGETHER]),
    ("backlog", "drain, jobs/s", [RATE]),
    ("backlog", "claim of 100, p50 in ms", [backlog.P50]),
    ("backlog", "claim of 100, p99 in ms", [backlog.P99]),
    ("queues", "drain of several queues, jobs/s", [RATE]),
    ("processes", "drain by several workers, jobs/s", [RATE]),
    ("slots", "drain in few slots or many, jobs/s", [RATE]),
    ("payloads", "larger payloads, MB/s", [ENQUEUED_MB, DRAINED_MB]),
    ("memory", "memory of the server, bytes a job", [memory.WEIGHT]),
]
"""Part, title, and what is drawn of it."""


def draw(parts: dict[str, Part]) -> None:
    """Write the picture of those parts that have results."""
    panels = [panel for panel in PANELS if panel[0] in parts]
    rows = -(-len(panels) // COLUMNS)
    inches = (PANEL_INCHES[0] * COLUMNS, PANEL_INCHES[1] * rows)
    with report.plot(FILE, rows=rows, columns=COLUMNS, inches=inches) as grid:
        for axes, (name, title, names) in zip(grid, panels, strict=False):
            points = parts[name].points
            if name == "memory":
                weigh_up(axes, points)
            elif name == "backlog":
                compare_crowds(axes, points, names[0])
            else:
                for what in names:
                    line(axes, points, what, label=what if len(names) > 1 else "")
                axes.set_xlabel(name)
            axes.set_title(title, fontsize=10, loc="left")
            axes.spines[["top", "right"]].set_visible(False)
            if axes.get_legend_handles_labels()[0]:
                axes.legend(frameon=False, fontsize=8)
        for axes in grid[len(panels) :]:
            axes.set_visible(False)


def line(axes: Axes, points: Sequence[Point], what: str, *, label: str) -> None:
    """Draw one line over sizes on a logarithmic axis; the ordinate begins at 0."""
    sizes = [point.size for point in points]
    medians = [point.median(what) for point in points]
    below = [point.median(what) - min(point.runs[what]) for point in points]
    above = [max(point.runs[what]) - point.median(what) for point in points]
    axes.errorbar(
        sizes, medians, yerr=[below, above], marker="o", markersize=4, capsize=3, label=label
    )
    axes.set_xscale("log")
    axes.set_xticks(sorted({*sizes, *axes.get_xticks(minor=False)} & set(sizes)))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.minorticks_off()
    axes.set_ylim(bottom=0)


def compare_crowds(axes: Axes, points: Sequence[Point], what: str) -> None:
    """Draw a line for each sort of jobs, all from the point with nothing else in the queue."""
    first = points[0]
    for sort in (backlog.WAITING, backlog.KEPT, backlog.DELAYED, backlog.DEAD):
        more = [point for point in points[1:] if point.line == sort]
        line(axes, [first, *more], what, label=sort)
    axes.set_xlabel("jobs in the queue")


def weigh_up(axes: Axes, points: Sequence[Point]) -> None:
    """Draw what a job weighs, by state and payload."""
    for point in reversed(points):
        if point.line != memory.STREAM:
            bar = axes.barh(f"{point.line}, {point.size} B", point.median(memory.WEIGHT))
            axes.bar_label(bar, fmt="{:,.0f}", padding=3, fontsize=8)
    axes.margins(x=0.15)

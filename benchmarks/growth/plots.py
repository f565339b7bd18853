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
    ("backlog", "Redis commands a job", [backlog.COMMANDS]),
    ("backlog", "drain, jobs/s", [RATE]),
    ("backlog", "claim of 100, p50 in ms", [backlog.P50]),
    ("backlog", "claim of 100, p99 in ms", [backlog.P99]),
    ("queues", "drain of several queues, jobs/s", [RATE]),
    ("processes", "drain by several workers, jobs/s", [RATE]),
    ("slots", "drain in few slots or many, jobs/s", [RATE]),
    ("keys", "drain of jobs with a limit, jobs/s", [RATE]),
    ("turns", "drain of jobs that take turns, jobs/s", [RATE]),
    ("payloads", "larger payloads, MB/s", [ENQUEUED_MB, DRAINED_MB]),
    ("memory", "memory of the server, bytes a job", [memory.WEIGHT]),
]
"""Part, title, and what is drawn of it."""

SIZES = {"backlog": "jobs in the queue", "turns": "keys"}
"""What the sizes of a part are, where its name is another."""

Line = tuple[str, str, Sequence[Point]]
"""A label, what is drawn, and the points."""


def draw(parts: dict[str, Part]) -> None:
    """Write the picture of those parts that have results."""
    panels = [panel for panel in PANELS if panel[0] in parts]
    if not panels:
        return
    rows = -(-len(panels) // COLUMNS)
    inches = (PANEL_INCHES[0] * COLUMNS, PANEL_INCHES[1] * rows)
    with report.plot(FILE, rows=rows, columns=COLUMNS, inches=inches) as grid:
        for axes, (name, title, names) in zip(grid, panels, strict=False):
            axes.set_title(title, fontsize=10, loc="left")
            axes.spines[["top", "right"]].set_visible(False)
            points = parts[name].points
            if name == "memory":
                draw_weights(axes, points)
            else:
                draw_lines(axes, name, lines_of(name, points, names))
        for axes in grid[len(panels) :]:
            axes.set_visible(False)


def lines_of(name: str, points: Sequence[Point], names: Sequence[str]) -> list[Line]:
    """Return the lines of a panel: one for each of the values, or for each sort of backlog."""
    if name != "backlog":
        return [(what, what, points) for what in names]
    # All from the point with nothing else in the queue.
    return [
        (sort, names[0], [points[0], *(point for point in points[1:] if point.line == sort)])
        for sort in (backlog.WAITING, backlog.KEPT, backlog.DELAYED, backlog.DEAD)
    ]


def draw_lines(axes: Axes, name: str, lines: Sequence[Line]) -> None:
    """Draw lines over sizes on a logarithmic axis; the ordinate begins at 0."""
    sizes: set[int] = set()
    for label, what, points in lines:
        at = [point.size for point in points]
        medians = [point.median(what) for point in points]
        below = [point.median(what) - min(point.runs[what]) for point in points]
        above = [max(point.runs[what]) - point.median(what) for point in points]
        axes.errorbar(
            at, medians, yerr=[below, above], marker="o", markersize=4, capsize=3, label=label
        )
        sizes.update(at)
    axes.set_xscale("log")
    axes.set_xticks(sorted(sizes))
    axes.minorticks_off()
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,.3g}" if axes.get_ylim()[1] < 100 else "{x:,.0f}")
    axes.set_ylim(0, 1.1 * max(max(p.runs[what]) for _, what, points in lines for p in points))
    axes.set_xlabel(SIZES.get(name, name))
    if len(lines) > 1:
        axes.legend(frameon=False, fontsize=8)


def draw_weights(axes: Axes, points: Sequence[Point]) -> None:
    """Draw what a job weighs, by state and payload."""
    weights = [point for point in reversed(points) if point.line != memory.STREAM]
    labels = [f"{point.line}, {point.size} B" for point in weights]
    bars = axes.barh(labels, [point.median(memory.WEIGHT) for point in weights], color=report.OURS)
    axes.bar_label(bars, fmt="{:,.0f}", padding=3, fontsize=8)
    axes.margins(x=0.15)

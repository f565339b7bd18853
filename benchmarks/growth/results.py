"""The results of all parts: a file that keeps the last of each, and tables in the README."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from benchmarks import report
from benchmarks.growth import memory
from benchmarks.growth.draining import RATE
from benchmarks.growth.points import Part, Point
from benchmarks.harness import RESULTS, shown

FILE = RESULTS.with_name("growth.json")
SECTION = "growth"


def load() -> dict[str, Part]:
    """Return the last results of each part that has any."""
    if not FILE.exists():
        return {}
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Part])


def save(parts: dict[str, Part]) -> None:
    """Keep the results of all parts."""
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(parts)))


def write(parts: dict[str, Part]) -> None:
    """Put the tables of all parts into the README.

    Raises:
        MarkerError: the README has no marks for them.
    """
    abouts = {f"Measured on {p.day}: {report.machine_line(p.machine)}." for p in parts.values()}
    texts = sorted(abouts)
    for name, part in parts.items():
        texts += [f"### {name.capitalize()}: {part.title}", table_of(name, part.points)]
    report.replace_section(report.README, SECTION, "\n\n".join(texts))


def table_of(name: str, points: Sequence[Point]) -> str:
    """Return a part's table in Markdown: medians, and the range of the runs of the drain."""
    if name == "memory":
        return memory_table(points)
    heads = [name]
    for what in points[0].runs:
        heads += [what, "runs"] if what == RATE else [what]
    return report.table(heads, [cells_of(point) for point in points])


def cells_of(point: Point) -> list[str]:
    """Return one line of a part's table."""
    cells = [f"{point.size:,} {point.line}".strip()]
    for what, runs in point.runs.items():
        cells.append(shown(point.median(what)))
        if what == RATE:
            cells.append(f"{shown(min(runs))} to {shown(max(runs))}")
    return cells


def memory_table(points: Sequence[Point]) -> str:
    """Return what a job weighs: a line a state, a column a payload."""
    weights = {(p.line, p.size): shown(p.median(memory.WEIGHT)) for p in points}
    rows = [
        [f"one {state} job", weights[state, memory.SMALL], weights[state, memory.LARGE]]
        for state in (memory.WAITING, memory.DELAYED, memory.COMPLETED)
    ]
    event = weights[memory.STREAM, memory.EVENTS]
    return report.table(["bytes", '{"x":1}', "200 B"], [*rows, ["one event", event, event]])

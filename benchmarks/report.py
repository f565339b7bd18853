"""How results are shown: Markdown tables, marked sections of a file, and plots in SVG.

It measures nothing. matplotlib is imported here only, and only when something is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchmarks.harness import Figure, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

README = Path(__file__).with_name("README.md")
PLOTS = Path(__file__).with_name("plots")
NOTHING = "\N{EN DASH}"
"""Stands where there is no value."""
OURS = "#1f6fb4"
OTHERS = "#b9c2cc"
LOG_FROM = 20.0
"""Where the longest bar is so many times the shortest, the axis is logarithmic."""


class MarkerError(ValueError):
    """The file does not have the marks of the section exactly once, one after the other."""


class Bars(msgspec.Struct, frozen=True):
    """One panel of horizontal bars.

    Attributes:
        title: what is measured.
        unit: of the values.
        values: by label, drawn from the top down; None where there is none.
    """

    title: str
    unit: str
    values: Mapping[str, float | None]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown, without a line break at its end.

    Raises:
        ValueError: a row has another number of cells than there are heads.
    """
    lines = [heads, ["---"] * len(heads)]
    for row in rows:
        if len(row) != len(heads):
            raise ValueError(f"a row of {len(row)} cells under {len(heads)} heads: {row}")
        lines.append(row)
    return "\n".join(
        f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines
    )


def figures_table(figures: Iterable[Figure]) -> str:
    """Return the table of some figures: median, the range of the runs, and the goal."""
    rows = [
        [
            figure.name,
            f"{shown(figure.value)} {figure.unit}",
            f"{shown(min(figure.runs))} to {shown(max(figure.runs))}",
            str(figure.goal or ""),
            figure.verdict,
        ]
        for figure in figures
    ]
    return table(["figure", "median", "runs", "goal", ""], rows)


def machine_line(about: Mapping[str, str]) -> str:
    """Return what the figures depend on, as one line."""
    return ", ".join(f"{name} {value}" for name, value in about.items())


def replace_section(path: Path, name: str, text: str) -> None:
    """Put ``text`` between ``<!-- name -->`` and ``<!-- /name -->`` in a file.

    Raises:
        MarkerError: the file does not have both exactly once, in this order; it is unchanged.
    """
    first, last = f"<!-- {name} -->", f"<!-- /{name} -->"
    content = path.read_text()
    before, opening, rest = content.partition(first)
    _, closing, after = rest.partition(last)
    if not (opening and closing) or content.count(first) > 1 or content.count(last) > 1:
        raise MarkerError(f"{path.name} must have {first} and then {last}, once each")
    path.write_text(f"{before}{first}\n{text.strip()}\n{last}{after}")


@contextmanager
def plot(
    path: Path, *, rows: int, columns: int, inches: tuple[float, float]
) -> Iterator[list[Axes]]:
    """Yield a grid of axes, row by row, and write them to an SVG file at the end.

    The same figures give the same bytes, so that a version control system sees what changed.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context(
        {"svg.hashsalt": path.stem, "svg.fonttype": "none", "font.size": 9},
    ):
        canvas = Canvas(figsize=inches, layout="constrained")
        yield list(canvas.subplots(rows, columns, squeeze=False).flat)
        path.parent.mkdir(exist_ok=True)
        canvas.savefig(path, format="svg", metadata={"Date": None})


def draw_bars(axes: Axes, bars: Bars, *, ours: str = "headrace") -> None:
    """Draw one panel; the bar with the label ``ours`` stands out."""
    labels = list(bars.values)
    known = [value for value in bars.values.values() if value]
    is_log = bool(known) and max(known) > LOG_FROM * min(known)
    # A logarithmic axis has no zero: it begins a little below the shortest bar.
    begin = min(known) / 2 if is_log else 0.0
    lengths = [value or begin for value in bars.values.values()]
    if is_log:
        axes.set_xscale("log")
    drawn = axes.barh(labels, lengths, color=[OURS if name == ours else OTHERS for name in labels])
    texts = [NOTHING if value is None else shown(value) for value in bars.values.values()]
    axes.bar_label(drawn, texts, padding=3, fontsize=8)
    axes.set_xlim(begin, max(known, default=1.0) * (6 if is_log else 1.2))
    axes.set_title(f"{bars.title}, {bars.unit}", fontsize=10, loc="left")
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def draw_panels(
    path: Path, panels: Sequence[Bars], *, columns: int, ours: str = "headrace"
) -> None:
    """Write an SVG file of panels of bars, so many side by side."""
    rows = -(-len(panels) // columns)
    longest = max(len(panel.values) for panel in panels)
    inches = (4.2 * columns, (0.6 + 0.22 * longest) * rows)
    with plot(path, rows=rows, columns=columns, inches=inches) as grid:
        for axes, panel in zip(grid, panels, strict=False):
            draw_bars(axes, panel, ours=ours)
        for axes in grid[len(panels) :]:
            axes.set_visible(False)

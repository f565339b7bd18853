"""Pictures for people: values over time and beside each other, as PNG files. It knows no Spark."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from headrace.spark.requirements import check_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

Unit = Literal["jobs", "ms", "share"]

COLOURS = ("#0072b2", "#e69f00", "#d55e00", "#666666")
"""Of the series of a panel, in order; people who see red and green alike tell them apart."""

_GRID = "#dddddd"
_BESIDE: Mapping[str, Any] = {
    "loc": "upper left",
    "bbox_to_anchor": (1, 1),
    "frameon": False,
    "fontsize": 9,
}

NOTHING = "nothing in this span of time"
SPREAD = 20.0
"""Where the greatest time is so many times the least, the axis is logarithmic."""

_LEAST_MS = 0.5
"""Where a time of 0 ms is on a logarithmic axis."""

_WIDE, _DPI = 10.0, 120
_LINES_HIGH, _ROW_HIGH, _AROUND = 3.4, 0.27, 0.9
_LABEL_LIMIT = 64
_TICKS = 7
_SECOND_MS, _MINUTE_MS, _HOUR_MS = 1000, 60_000, 3_600_000
_NICE_MS = (
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(_SECOND_MS * count for count in (1, 2, 5, 10, 20, 30)),
    *(_MINUTE_MS * count for count in (1, 2, 5, 10, 20, 30)),
    *(_HOUR_MS * count for count in (1, 2, 5, 12, 24, 48, 120, 240)),
)
_FEW_MS = {1, 10, 100, _SECOND_MS, 10 * _SECOND_MS, _MINUTE_MS, 10 * _MINUTE_MS, _HOUR_MS}
_FEW = 60
"""Where there are no more points than that, each has a mark."""


class Lines(msgspec.Struct, frozen=True, kw_only=True):
    """A panel of values over time.

    Attributes:
        title: what they are.
        unit: of the values.
        ats: when each bucket begins, without gaps.
        series: by name, a value for each bucket; None where there is none.
    """

    title: str
    unit: Unit
    ats: Sequence[datetime]
    series: Mapping[str, Sequence[float | None]]


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """A panel of things beside each other, the first on top.

    Attributes:
        title: what they are.
        unit: of the values.
        labels: of the things.
        series: by name, a value for each thing; None where there is none. A lone one is drawn as
            bars, others as marks on a line.
        notes: what stands behind each bar.
    """

    title: str
    unit: Unit
    labels: Sequence[str]
    series: Mapping[str, Sequence[float | None]]
    notes: Sequence[str] = ()


def draw(path: Path, title: str, panels: Sequence[Lines | Rows]) -> None:
    """Write a PNG file of panels below each other.

    Raises:
        MissingRequirement: matplotlib is not installed.
    """
    check_matplotlib()
    import matplotlib as mpl

    # A message may have dollar signs, which are no formulas, and letters that the font has not.
    with mpl.rc_context({"text.parse_math": False}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure_of(title, panels).savefig(path, format="png")


def figure_of(title: str, panels: Sequence[Lines | Rows]) -> Figure:
    """Return panels below each other as a figure of matplotlib."""
    from matplotlib.figure import Figure

    heights = [_height(panel) for panel in panels]
    figure = Figure(figsize=(_WIDE, sum(heights)), dpi=_DPI, layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
    for axes, panel in zip(grid.flat, panels, strict=True):
        axes.set_title(panel.title, loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_axisbelow(True)
        axes.set_prop_cycle(color=COLOURS)
        if not _known(panel):
            axes.text(0.5, 0.5, NOTHING, ha="center", va="center", transform=axes.transAxes)
            axes.set(xticks=[], yticks=[])
        elif isinstance(panel, Lines):
            _draw_lines(axes, panel)
        else:
            _draw_rows(axes, panel)
    return figure


def duration_text(ms: float) -> str:
    """Return a time as people say it: ``250 ms``, ``1.5 s``, ``2 min``, ``3 h``."""
    for unit, unit_ms in (("h", _HOUR_MS), ("min", _MINUTE_MS), ("s", _SECOND_MS)):
        if ms >= unit_ms:
            return f"{_rounded(ms / unit_ms)} {unit}"
    return f"{_rounded(ms)} ms"


def share_text(share: float) -> str:
    """Return a share of 1 in per cent: ``12.5 %``."""
    return f"{share * 100:.3g} %"


def _rounded(number: float) -> str:
    """Return a number with three digits that count, and never with an exponent if it is large."""
    return f"{float(f'{number:.3g}'):,g}"


def _height(panel: Lines | Rows) -> float:
    if isinstance(panel, Lines):
        return _LINES_HIGH
    return _AROUND + _ROW_HIGH * max(3, len(panel.labels))


def _known(panel: Lines | Rows) -> list[float]:
    return [value for values in panel.series.values() for value in values if value is not None]


def _draw_lines(axes: Axes, panel: Lines) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num

    is_log = _is_log(panel)
    instants = date2num(panel.ats)
    for name, values in panel.series.items():
        drawn = _drawn(values, is_log=is_log)
        marked = _marked(values)
        axes.plot(instants, drawn, marker="o", markevery=marked, ms=3, label=name, linewidth=1.3)
    if is_log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, max(_known(panel)) * 1.08 or 1)
    _tell_unit(axes.yaxis, panel.unit, is_log=is_log)
    locator = AutoDateLocator(tz=UTC, minticks=3)
    axes.xaxis.set_major_locator(locator)
    told = ConciseDateFormatter(locator, tz=UTC)
    # By default a tick of seconds says no minute, as if it were of the one at the end.
    told.formats[-1] = told.zero_formats[-1] = "%H:%M:%S"
    told.offset_formats[-1] = "%Y-%b-%d"
    axes.xaxis.set_major_formatter(told)
    axes.set_xlabel("UTC", fontsize=8)
    axes.grid(color=_GRID, linewidth=0.6)
    if len(panel.series) > 1:
        axes.legend(**_BESIDE)


def _draw_rows(axes: Axes, panel: Rows) -> None:
    if len(panel.series) == 1:
        _draw_bars(axes, panel)
    else:
        _draw_marks(axes, panel)
    axes.set_yticks(range(len(panel.labels)), [_short(label) for label in panel.labels], fontsize=8)
    axes.set_ylim(len(panel.labels) - 0.4, -0.6)
    axes.grid(axis="x", color=_GRID, linewidth=0.6)
    axes.tick_params(axis="y", length=0)


def _draw_bars(axes: Axes, panel: Rows) -> None:
    [values] = panel.series.values()
    lengths = [value or 0.0 for value in values]
    bars = axes.barh(range(len(values)), lengths, color=COLOURS[0], height=0.7)
    axes.bar_label(bars, panel.notes, padding=3, fontsize=8)
    axes.margins(x=0.05 + 0.015 * max(map(len, panel.notes), default=0))
    _tell_unit(axes.xaxis, panel.unit, is_log=False)


def _draw_marks(axes: Axes, panel: Rows) -> None:
    is_log = _is_log(panel)
    places = range(len(panel.labels))
    if is_log:
        axes.set_xscale("log")
    rows = [_drawn(values, is_log=is_log) for values in panel.series.values()]
    axes.hlines(places, list(map(min, *rows)), list(map(max, *rows)), color=_GRID, linewidth=2)
    for name, values in zip(panel.series, rows, strict=True):
        axes.plot(values, places, "o", label=name, ms=5)
    _tell_unit(axes.xaxis, panel.unit, is_log=is_log)
    axes.legend(**_BESIDE)


def _is_log(panel: Lines | Rows) -> bool:
    known = _known(panel)
    return panel.unit == "ms" and max(known) > SPREAD * max(min(known), _LEAST_MS)


def _drawn(values: Sequence[float | None], *, is_log: bool) -> list[float]:
    least = _LEAST_MS if is_log else 0.0
    return [math.nan if value is None else max(value, least) for value in values]


def _marked(values: Sequence[float | None]) -> list[int]:
    """Return the places of points that have a mark: where there are many, those beside no other."""
    places = [place for place, value in enumerate(values) if value is not None]
    if len(values) <= _FEW:
        return places
    known = set(places)
    return [place for place in places if not {place - 1, place + 1} & known]


def _tell_unit(axis: Axis, unit: Unit, *, is_log: bool) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_formatter(FuncFormatter(lambda value, _place: _TEXTS[unit](value)))
    if unit == "ms":
        axis.set_ticks(_time_ticks(*sorted(axis.get_view_interval()), is_log=is_log))
        axis.set_ticks([], minor=True)
    else:
        axis.set_major_locator(MaxNLocator(nbins=6, integer=unit == "jobs"))


def _time_ticks(least_ms: float, most_ms: float, *, is_log: bool) -> Sequence[float]:
    """Return few round times within bounds; of a linear axis, multiples of one."""
    if not is_log:
        step = next((nice for nice in _NICE_MS if most_ms / nice <= _TICKS), most_ms)
        return [step * place for place in range(int(most_ms / step) + 1)]
    within = [nice for nice in _NICE_MS if least_ms <= nice <= most_ms]
    return within if len(within) <= _TICKS else [nice for nice in within if nice in _FEW_MS]


def _short(label: str) -> str:
    return label if len(label) <= _LABEL_LIMIT else f"{label[: _LABEL_LIMIT - 1]}…"


_TEXTS: Mapping[Unit, Callable[[float], str]] = {
    "jobs": "{:,.0f}".format,
    "ms": duration_text,
    "share": share_text,
}

"""Pictures are readable: with a value or many, with gaps, with nothing, in UTC."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes

from headrace.spark.pipeline.pictures import (
    COLOURS,
    NOTHING,
    Lines,
    Rows,
    draw,
    duration_text,
    figure_of,
)

AT = datetime(2026, 1, 31, 23, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def lines(*series: Sequence[float | None], unit: str = "jobs") -> Lines:
    ats = [AT + place * MINUTE for place in range(len(series[0]))]
    named = {f"s{place}": values for place, values in enumerate(series)}
    return Lines(title="lines", unit=unit, ats=ats, series=named)  # type: ignore[arg-type] # a word


def drawn(panel: Lines | Rows) -> Axes:
    figure = figure_of("title", [panel])
    figure.draw_without_rendering()
    return figure.axes[0]


def labels(axes: Axes, which: str) -> list[str]:
    return [label.get_text() for label in getattr(axes, f"get_{which}ticklabels")()]


def test_lines_are_in_utc_and_broken_where_there_is_nothing() -> None:
    axes = drawn(lines([1, 2, None, 4], [5, 6, 7, 8]))
    first, second = axes.get_lines()
    np.testing.assert_equal(np.asarray(first.get_ydata()), np.array([1.0, 2.0, np.nan, 4.0]))
    days = np.diff(np.asarray(second.get_xdata(), dtype=float))
    assert days * 24 * 60 == pytest.approx([1.0, 1.0, 1.0], rel=1e-3)
    assert "23:30" in labels(axes, "x")
    assert axes.get_xlabel() == "UTC"
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["s0", "s1"]


def test_a_tick_of_seconds_says_its_minute() -> None:
    ats = [AT + timedelta(seconds=10 * place) for place in range(9)]
    axes = drawn(Lines(title="lines", unit="jobs", ats=ats, series={"s": [1.0] * 9}))
    assert {"23:30:20", "23:31:00"} <= set(labels(axes, "x"))
    assert axes.xaxis.get_offset_text().get_text() == "2026-Jan-31"


def test_times_far_apart_are_on_a_logarithmic_axis() -> None:
    apart = drawn(lines([0, 5, 90_000], unit="ms"))
    assert apart.get_yscale() == "log"
    assert labels(apart, "y") == ["1 ms", "10 ms", "100 ms", "1 s", "10 s", "1 min"]
    near = drawn(lines([30_000, 150_000, 300_000], unit="ms"))
    assert near.get_yscale() == "linear"
    assert labels(near, "y") == ["0 ms", "1 min", "2 min", "3 min", "4 min", "5 min"]
    assert drawn(lines([1, 1_000_000])).get_yscale() == "linear"


@pytest.mark.parametrize(
    ("values", "marked"),
    [([3], [0]), ([3, 4, None], [0, 1]), ([3] * 300, []), ([3] * 297 + [None, 4, None], [298])],
    ids=["one", "few", "many", "many and a lone one"],
)
def test_what_makes_no_line_is_a_mark(values: list[float | None], marked: list[int]) -> None:
    [line] = drawn(lines(values)).get_lines()
    assert (line.get_marker(), line.get_markevery()) == ("o", marked)


def test_each_series_has_a_colour_of_its_own() -> None:
    found = [line.get_color() for line in drawn(lines([1], [2], [3], [4], [5])).get_lines()]
    assert (found[:4], found[4]) == (list(COLOURS), COLOURS[0])


def test_a_lone_series_of_rows_is_bars_with_notes_from_the_top_down() -> None:
    axes = drawn(
        Rows(title="rows", unit="jobs", labels=["a", "b"], series={"n": [7, 3]}, notes=["7!", "3!"])
    )
    assert [bar.get_width() for bar in axes.patches] == [7, 3]  # type: ignore[attr-defined] # bars
    assert labels(axes, "y") == ["a", "b"]
    assert axes.yaxis_inverted()
    assert {"7!", "3!"} <= {text.get_text() for text in axes.texts}


@pytest.mark.parametrize("count", [1, 50])
def test_rows_have_room_however_many_there_are(count: int) -> None:
    series = {name: [float(n + 1) for n in range(count)] for name in ("p95", "p99")}
    figure = figure_of(
        "title", [Rows(title="r", unit="ms", labels=["x" * 200] * count, series=series)]
    )
    figure.draw_without_rendering()
    [axes] = figure.axes
    heights = [label.get_window_extent().height for label in axes.get_yticklabels()]
    room = axes.get_window_extent().height / count
    assert max(heights) < room
    assert axes.get_window_extent().width > 300


@pytest.mark.parametrize(
    "panel",
    [
        Lines(title="l", unit="ms", ats=[], series={"a": []}),
        Rows(title="r", unit="ms", labels=[], series={"a": [], "b": []}),
        lines([None, None], unit="ms"),
    ],
    ids=["no buckets", "no rows", "no values"],
)
def test_a_panel_without_values_says_so(panel: Lines | Rows) -> None:
    assert [text.get_text() for text in drawn(panel).texts] == [NOTHING]


def test_any_text_can_be_drawn(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    odd = ["$x^{", "任务", "a_b", "<text> & 100%"]
    draw(path, "$title_", [Rows(title="$r$", unit="jobs", labels=odd, series={"n": [1, 2, 3, 4]})])
    data = path.read_bytes()
    width, height = (int.from_bytes(data[place : place + 4]) for place in (16, 20))
    assert data.startswith(b"\x89PNG")
    assert (width, 150 < height < 600) == (1200, True)


def test_durations_are_said_as_people_say_them() -> None:
    told = [duration_text(ms) for ms in (0, 0.5, 250, 999.7, 1500, 120_000, 7_200_000, 4e9)]
    assert told == ["0 ms", "0.5 ms", "250 ms", "1,000 ms", "1.5 s", "2 min", "2 h", "1,110 h"]

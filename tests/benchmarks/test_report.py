"""How benchmarks show their results: tables, marked sections of the README, plots."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.harness import Figure, Goal
from benchmarks.report import (
    NOTHING,
    README,
    Bars,
    MarkerError,
    draw_panels,
    figures_table,
    machine_line,
    replace_section,
    table,
)


def test_a_table_is_markdown() -> None:
    assert table(["", "b"], [["x", "a|b"]]) == "|  | b |\n| --- | --- |\n| x | a&#124;b |"


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="a row of 1 cells under 2 heads"):
        table(["a", "b"], [["x"]])


def test_a_figure_shows_its_median_its_range_and_its_goal() -> None:
    figures = [
        Figure("drain", "jobs/s", [41_000.0, 30_000.0, 50_000.0], Goal(33_000, is_least=True)),
        Figure("p99", "ms", [0.25], Goal(0.2)),
        Figure("memory", "MB", [40.0]),
    ]
    rows = figures_table(figures).splitlines()[2:]
    assert rows == [
        "| drain | 41,000 jobs/s | 30,000 to 50,000 | ≥ 33,000 | met |",
        "| p99 | 0.25 ms | 0.25 to 0.25 | ≤ 0.2 | missed |",
        "| memory | 40 MB | 40 to 40 |  |  |",
    ]


def test_the_machine_is_one_line() -> None:
    assert machine_line({"cpu": "2 x fast", "python": "3.11"}) == "cpu 2 x fast, python 3.11"


def test_a_section_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("# A\n<!-- x -->\nold\n\nold\n<!-- /x -->\nend <!-- y -->\n")
    for text in ("new\n", "newer\n\n| a |"):
        replace_section(path, "x", text)
    expected = "# A\n<!-- x -->\nnewer\n\n| a |\n<!-- /x -->\nend <!-- y -->\n"
    assert path.read_text() == expected


@pytest.mark.parametrize(
    "content",
    [
        "",
        "<!-- x -->",
        "<!-- /x --> <!-- x -->",
        "<!-- x --> <!-- /x --> <!-- x -->",
        "<!-- x --> <!-- /x --> <!-- /x -->",
    ],
)
def test_a_file_without_one_pair_of_marks_is_refused_and_stays(
    tmp_path: Path, content: str
) -> None:
    path = tmp_path / "README.md"
    path.write_text(content)
    with pytest.raises(MarkerError, match="must have <!-- x --> and then <!-- /x -->"):
        replace_section(path, "x", "new")
    assert path.read_text() == content


@pytest.mark.parametrize("name", ["results", "peers", "spark"])
def test_the_readme_has_the_sections_that_the_benchmarks_write(tmp_path: Path, name: str) -> None:
    copy = tmp_path / "README.md"
    copy.write_text(README.read_text())
    replace_section(copy, name, "written")
    assert f"<!-- {name} -->\nwritten\n<!-- /{name} -->" in copy.read_text()


# The first import of matplotlib on a machine lists its fonts.
def test_a_plot_of_the_same_figures_has_the_same_bytes(tmp_path: Path) -> None:
    panels = [
        Bars("drain", "jobs/s", {"headrace": 52_000.0, "slow": 60.0, "none": None}),
        Bars("start", "ms", {"headrace": 0.4, "slow": 1.2, "none": None}),
        Bars("nothing", "ms", {"headrace": None, "slow": None, "none": None}),
    ]
    first, second = tmp_path / "a" / "plot.svg", tmp_path / "b" / "plot.svg"
    for path in (first, second):
        draw_panels(path, panels, columns=2)
    content = first.read_text()
    assert content == second.read_text()
    assert all(text in content for text in ("drain, jobs/s", "52,000", "none", NOTHING))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--write", "bulk"], "--write takes a full run: name no scenario with it"),
        (["--write", "nonsense"], "no scenario nonsense: use floor, bulk"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(
    words: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", *words])
    assert main() == 2
    assert message in capsys.readouterr().err

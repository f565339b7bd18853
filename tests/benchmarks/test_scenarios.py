"""Which scenarios the words of the command name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.__main__ import SCENARIOS, is_meant, main
from tests.support.processes import ROOT


def named(word: str) -> list[str]:
    return [name for name in SCENARIOS if is_meant(word, name)]


def test_a_word_names_a_scenario_or_all_that_begin_with_it() -> None:
    assert named("embedded_huey") == ["embedded_huey"]
    assert named("embedded") == ["embedded", "embedded_wakeup", "embedded_huey"]
    assert named("embed") == []


def test_every_target_of_make_names_scenarios_that_there_are() -> None:
    words = re.findall(r"python -m benchmarks (\w+)", Path(ROOT, "Makefile").read_text())
    assert words
    assert [word for word in words if not named(word)] == []


def test_a_word_that_names_none_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["benchmarks", "embed", "schedules"])
    assert main() == 2
    assert capsys.readouterr().err.startswith("no scenario embed: use floor, bulk,")

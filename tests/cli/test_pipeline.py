"""The commands of the pipeline where Spark is not: help, what is missing, and what is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from headrace.cli.pipeline import pipeline
from tests.support.processes import ROOT
from tests.support.until import patience

LIMIT_S = 60
EACH = sorted(pipeline.commands)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Return a directory with all that is installed but pyspark."""
    for package in Path(click.__file__).parents[1].iterdir():
        if not package.name.startswith("pyspark"):
            (tmp_path / package.name).symlink_to(package)
    return tmp_path


def run(*words: str, path: Path) -> subprocess.CompletedProcess[str]:
    told = {name: value for name, value in os.environ.items() if not name.startswith("HEADRACE")}
    return subprocess.run(
        [sys.executable, "-S", *words],
        cwd=ROOT,
        env={**told, "PYTHONPATH": f"{ROOT / 'src'}:{path}"},
        capture_output=True,
        text=True,
        timeout=patience(LIMIT_S),
        check=False,
    )


@pytest.mark.parametrize("words", [(), *((name,) for name in EACH)], ids=["group", *EACH])
def test_help_needs_no_spark(words: tuple[str, ...], bare: Path) -> None:
    done = run("-m", "headrace", "pipeline", *words, "--help", path=bare)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(" ".join(["Usage: headrace pipeline", *words]))


def test_the_commands_import_nothing_of_spark() -> None:
    program = (
        "import sys, headrace.cli.pipeline; parts = ('pyspark', 'pyarrow', 'headrace.spark');"
        "print([name for name in sys.modules if name.startswith(parts)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_the_first_use_says_what_is_missing(bare: Path) -> None:
    done = run("-m", "headrace", "pipeline", "rollup", "archive", path=bare)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "Error: pyspark 4.1 or newer is not installed: "
        "pip install 'pyspark>=4.1,<5' 'pyarrow>=18'\n"
    )


def test_what_is_missing_on_the_command_line_is_said_without_spark(bare: Path) -> None:
    done = run("-m", "headrace", "pipeline", "retain", "archive", path=bare)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Missing option '--days'" in done.stderr

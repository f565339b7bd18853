"""The guides on Spark are followed from top to end: files, commands, and cells of one session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import ROOT
from tests.support.until import patience


@pytest.mark.slow
@pytest.mark.parametrize("page", ["spark.md", "pipeline.md"])
def test_each_step_of_the_guide_does_what_it_says(
    page: str, redis_url: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.support.guide", page],
        cwd=tmp_path,
        env={**os.environ, "HEADRACE_URL": redis_url, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=patience(90),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]

"""The example with a real data set runs: on a server of its own, with a worker of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import ROOT
from tests.support.until import patience


@pytest.mark.slow
def test_flights_become_jobs_and_come_back(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.flights", "--limit", "1500", "--keep", "kept"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=patience(90),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    printed = done.stdout
    assert "1,500 rows, 1,500 jobs\n" in printed
    assert "1,500 rows, 1,500 jobs, known: it brought in nothing again\n" in printed
    assert re.search(r"<number> was cancelled *\| +[1-9]", printed)
    [events] = re.findall(r"([0-9,]+) events", printed)
    assert int(events.replace(",", "")) >= 3 * 1500
    plots = sorted(path.name for path in (tmp_path / "kept" / "plots").iterdir())
    assert plots == ["errors.png", "latency.png", "throughput.png"]

"""A run of the soak as a child of a test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.processes import ROOT

LIMIT_S = 180


def soak(directory: Path, *words: str) -> tuple[int, str]:
    """Run the soak, with its files in a directory; return its exit code and what it printed."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.chaos.soak", *words],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(directory)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    return ran.returncode, ran.stdout + ran.stderr

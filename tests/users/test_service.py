"""The service in examples/service: its own tests and types."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.processes import ROOT
from tests.support.until import patience

SERVICE = ROOT / "examples" / "service"
LIMIT_S = 60


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a Python module in the service's folder, and wait for its end."""
    # basedpyright looks for packages in the environment of the first Python on the path.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=SERVICE,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=patience(3 * LIMIT_S),
        check=False,
    )


def test_its_own_tests_pass() -> None:
    done = run("pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\d+ passed", done.stdout, re.M)


def test_mypy_finds_nothing_in_it(tmp_path: Path) -> None:
    done = run("mypy", "--cache-dir", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr


def test_basedpyright_finds_nothing_in_it() -> None:
    done = run("basedpyright", "--pythonpath", sys.executable)
    assert done.returncode == 0, done.stdout + done.stderr

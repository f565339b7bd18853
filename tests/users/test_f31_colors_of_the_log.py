"""F31: ``NO_COLOR`` and ``FORCE_COLOR`` are obeyed by the worker's log."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.bursts import burst
from tests.support.processes import ROOT
from tests.support.until import patience

APP = "tests.apps.large_app"
ESCAPE = "\x1b["


def on_a_terminal(directory: Path, **environment: str) -> str:
    """Return what a worker writes to a terminal."""
    person, terminal = pty.openpty()
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    words = ["worker", APP, "--burst", "--url", f"file://{directory}/data"]
    with subprocess.Popen(
        [sys.executable, "-m", "headrace", *words],
        cwd=ROOT,
        env={**kept, "TERM": "xterm", **environment},
        stderr=terminal,
    ) as process:
        os.close(terminal)
        text = b""
        try:
            while piece := os.read(person, 65536):
                text += piece
        except OSError:
            pass  # how the end of a terminal is told
        os.close(person)
        assert process.wait(patience(30)) == 0
    return text.decode()


@pytest.mark.parametrize(
    ("environment", "is_colored"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
    ],
)
def test_f31_no_color_is_obeyed(
    tmp_path: Path, environment: dict[str, str], *, is_colored: bool
) -> None:
    """F31."""
    text = on_a_terminal(tmp_path, **environment)
    assert "worker.started" in text
    assert (ESCAPE in text) is is_colored


def test_f31_force_color_is_obeyed(tmp_path: Path) -> None:
    """F31: where the log is no terminal, but not in JSON."""
    assert ESCAPE in burst(tmp_path, APP, [], FORCE_COLOR="1").text
    assert ESCAPE not in burst(tmp_path, APP, []).text
    as_json = burst(tmp_path, APP, [], "--log-format", "json", FORCE_COLOR="1")
    assert ESCAPE not in as_json.text
    assert as_json.of("worker.started")

"""F1, F4: what docs/logging.md says of error trackers and caplog works as it stands there."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.bursts import Burst, burst
from tests.support.processes import ROOT
from tests.support.until import patience

GUIDE = ROOT / "docs" / "logging.md"
DOCS = 'App(tenant="docs")'


def program_with(text: str) -> str:
    """Return the program of the guide that has this in it."""
    found = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.M | re.S)
    [program] = [program for program in found if text in program]
    return str(program)


class Tracker(BaseHTTPRequestHandler):
    """Takes events as Sentry does, and keeps them."""

    events: list[dict[str, Any]]

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            data = gzip.decompress(data)
        parts = [json.loads(line) for line in data.splitlines() if line]
        self.events += [part for part in parts if "event_id" in part and "logger" in part]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def tracking() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Run a tracker; yield its DSN and what it has been sent."""
    events: list[dict[str, Any]] = []
    kind = type("OwnTracker", (Tracker,), {"events": events})
    with HTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://key@127.0.0.1:{server.server_port}/1", events
        finally:
            server.shutdown()
            thread.join()


def run_worker(directory: Path, **arguments: int) -> tuple[Burst, list[dict[str, Any]]]:
    """Run a job of the recipe; return what the worker logged, and what the tracker was sent."""
    program = program_with("sentry_sdk").replace(DOCS, "App()")
    (directory / "sums.py").write_text(program)
    with tracking() as (dsn, events):
        ran = burst(
            directory,
            "sums",
            [("sums.divide", "sums", arguments)],
            SENTRY_DSN=dsn,
            PYTHONPATH=str(directory),
        )
    return ran, events


def test_a_failed_job_arrives_at_sentry_with_its_traceback_and_tags(tmp_path: Path) -> None:
    ran, [event] = run_worker(tmp_path, number=1, by=0)
    assert "job.failed" in ran.text
    assert (event["logger"], event["level"]) == ("headrace", "error")
    assert event["tags"]["task"] == "sums.divide"
    assert event["tags"]["queue"] == "sums"
    assert event["tags"]["start"] in (1, "1")
    assert event["tags"]["job_id"] in ran.text
    [error] = event["exception"]["values"]
    assert (error["type"], error["value"]) == ("ZeroDivisionError", "division by zero")
    assert event["fingerprint"] == ["sums.divide", "ZeroDivisionError"]
    assert "return number / by" in event["extra"]["traceback"]


def test_an_error_that_a_handler_logs_arrives_at_sentry_with_its_job(tmp_path: Path) -> None:
    _, [event] = run_worker(tmp_path, number=1, by=-1)
    assert event["logentry"]["message"] == "by is negative"
    assert event["tags"]["task"] == "sums.divide"
    assert "fingerprint" not in event


@pytest.mark.parametrize("text", ["caplog"])
def test_the_recipe_for_caplog_passes(tmp_path: Path, text: str) -> None:
    (tmp_path / "test_recipe.py").write_text(program_with(text))
    words = ["-q", "-o", "asyncio_mode=auto", "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, str(tmp_path)],
        cwd=tmp_path,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_logging_of_one_s_own_has_the_job_of_each_line(tmp_path: Path) -> None:
    """F3, F4: by the filter and by the processor."""
    program = program_with("dictConfig").replace(DOCS, 'App("memory://")')
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=True,
    )
    [plain] = [line for line in done.stderr.splitlines() if line.endswith(" sending")]
    structured = json.loads(done.stdout)
    assert plain == f"INFO shop job={structured['job_id']} sending"
    assert (structured["event"], structured["queue"]) == ("sending too", "emails")
    assert f"INFO headrace job={structured['job_id']} job.completed" in done.stderr
    assert "INFO headrace job=- worker.started" in done.stderr

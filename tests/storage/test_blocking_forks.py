"""A blocking storage on both sides of a fork: each process has its own, and every job is there."""

from __future__ import annotations

import secrets
import subprocess
import sys
from pathlib import Path

from tests.storage.programs import ALL_IS_AN_ERROR, FORKS_MAY, environment
from tests.support.processes import ROOT
from tests.support.said import said
from tests.support.tls import tls_server
from tests.support.until import patience

PROGRAM = "tests.apps.blocking_forks"
SCENARIOS = [
    "before_use",
    "after_use",
    "in_call",
    "prefork",
    "grandchild",
    "spawn",
    "multiprocessing_fork",
    "inbox",
]


def run(url: str, *scenarios: str, env: dict[str, str] | None = None) -> None:
    """Run scenarios one after another in one process, and see that all is well in each."""
    done = subprocess.run(
        [sys.executable, *ALL_IS_AN_ERROR, *FORKS_MAY, "-m", PROGRAM, url, *scenarios],
        capture_output=True,
        cwd=ROOT,
        env=env,
        timeout=patience(60),
        check=False,
    )
    assert (done.returncode, said(done.stderr.decode())) == (0, "")
    assert done.stdout.decode().split() == [*scenarios]


def test_on_redis(redis_url: str) -> None:
    run(redis_url, *SCENARIOS, "connection")


def test_in_a_directory(tmp_path: Path) -> None:
    run(f"file://{tmp_path}/data", *SCENARIOS)


def test_in_a_loop_of_another_thread(tmp_path: Path) -> None:
    scenarios = ("before_use", "after_use", "prefork", "inbox")
    run(f"acme://{tmp_path}/data", *scenarios, env=environment(tmp_path))


def test_the_memory_of_a_parent_is_refused() -> None:
    run(f"memory://test-{secrets.token_hex(6)}", "memory")


def test_over_tls(tmp_path: Path) -> None:
    with tls_server(tmp_path) as (_, url):
        run(url, "after_use", "in_call", "connection")

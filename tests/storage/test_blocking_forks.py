"""A blocking storage on both sides of a fork: each process has its own, and every job is there."""

from __future__ import annotations

import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from tests.storage.programs import ALL_IS_AN_ERROR, FORKS_MAY, environment
from tests.support.processes import ROOT
from tests.support.tls import tls_server
from tests.support.until import patience

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


def run(scenario: str, url: str, env: dict[str, str] | None = None) -> None:
    program = [sys.executable, *ALL_IS_AN_ERROR, *FORKS_MAY, "-m", "tests.apps.blocking_forks"]
    done = subprocess.run(
        [*program, scenario, url],
        capture_output=True,
        cwd=ROOT,
        env=env,
        timeout=patience(60),
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.decode()) == (0, b"fine\n", "")


@pytest.mark.parametrize("scenario", [*SCENARIOS, "connection"])
def test_on_redis(redis_url: str, scenario: str) -> None:
    run(scenario, redis_url)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_in_a_directory(tmp_path: Path, scenario: str) -> None:
    run(scenario, f"file://{tmp_path}/data")


@pytest.mark.parametrize("scenario", ["before_use", "after_use", "prefork", "inbox"])
def test_in_a_loop_of_another_thread(tmp_path: Path, scenario: str) -> None:
    run(scenario, f"acme://{tmp_path}/data", environment(tmp_path))


def test_the_memory_of_a_parent_is_refused() -> None:
    run("memory", f"memory://test-{secrets.token_hex(6)}")


@pytest.mark.parametrize("scenario", ["after_use", "in_call", "connection"])
def test_over_tls(tmp_path: Path, scenario: str) -> None:
    with tls_server(tmp_path) as (_, url):
        run(scenario, url)

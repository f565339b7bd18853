"""A program that ends with a blocking storage open, in whatever state, says nothing of it."""

from __future__ import annotations

import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from tests.storage.programs import ALL_IS_AN_ERROR, environment
from tests.support.processes import ROOT
from tests.support.said import said
from tests.support.until import patience


@pytest.fixture(params=["redis", "file", "memory", "acme"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a storage of each kind."""
    if request.param == "memory":
        return f"memory://test-{secrets.token_hex(6)}"
    if request.param == "redis":
        url: str = request.getfixturevalue("redis_url")
        return url
    return f"{request.param}://{tmp_path}/data"


@pytest.mark.parametrize(
    ("how", "printed"),
    [("with_all_open", b"fine\n"), ("in_a_call", b"fine\n"), ("by_an_error", b"")],
    ids=["with_all_open", "in_a_call", "by_an_error"],
)
def test_nothing_is_said(tmp_path: Path, url: str, how: str, printed: bytes) -> None:
    done = subprocess.run(
        [sys.executable, *ALL_IS_AN_ERROR, "-m", "tests.apps.blocking_exits", how, url],
        capture_output=True,
        cwd=ROOT,
        env=environment(tmp_path),
        timeout=patience(60),
        check=False,
    )
    assert (done.returncode, done.stdout, said(done.stderr.decode())) == (0, printed, "")

"""What the system calls things, and in which encoding, does not matter to a storage."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote_from_bytes

import pytest

from tests.support.processes import ROOT
from tests.support.until import patience

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""A locale that has ASCII only, and Python takes it at its word."""


def headrace(
    *words: str, env: dict[str, str], stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "headrace", *words],
        cwd=ROOT,
        env={**os.environ, **env},
        input=stdin,
        capture_output=True,
        timeout=patience(15),
        check=False,
    )


@pytest.fixture(params=["redis", "file"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "redis":
        url: str = request.getfixturevalue("redis_url")
        return url
    return f"file://{tmp_path}/data"


def test_the_command_line_works_in_a_locale_of_ascii(address: str) -> None:
    words = ("-q", "mail", "--args", "-")
    env = {**ASCII, "HEADRACE_REDIS_URL": address}
    text = '{"text": "größer"}'.encode()
    added = headrace("enqueue", "send", *words, "--id", "one", stdin=text, env=env)
    assert (added.returncode, added.stderr) == (0, b"")
    shown = headrace("job", "show", "one", "-q", "mail", "-o", "json", env=env)
    assert shown.returncode == 0, shown.stderr
    assert b"gr\\u00f6\\u00dfer" in shown.stdout or "größer".encode() in shown.stdout


def test_a_directory_may_have_a_name_that_is_no_text(tmp_path: Path) -> None:
    directory = os.fsencode(tmp_path) + b"/caf\xe9"
    address = f"file://{quote_from_bytes(directory)}"
    added = headrace("enqueue", "send", "-q", "mail", env={"HEADRACE_REDIS_URL": address})
    assert added.returncode == 0, added.stderr
    assert b"headrace.sqlite3" in os.listdir(directory)


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root on Linux may mount"
)
@pytest.mark.parametrize("env", [{}, ASCII], ids=["utf-8", "ascii"])
def test_a_mount_point_may_have_a_name_that_is_no_text(tmp_path: Path, env: dict[str, str]) -> None:
    mounted = os.fsencode(tmp_path) + b"/usb_caf\xe9"
    os.mkdir(mounted)
    # In a mount namespace of its own, which ends with it.
    script = b'mount -t tmpfs tmpfs "$1" && shift && exec "$@"'
    command = [sys.executable, "-m", "headrace", "enqueue", "send", "-q", "mail"]
    ran = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", mounted, *command],  # noqa: S607
        cwd=ROOT,
        env={**os.environ, **env, "HEADRACE_REDIS_URL": f"file://{tmp_path}/data"},
        capture_output=True,
        timeout=patience(15),
        check=False,
    )
    if b"unshare" in ran.stderr:
        pytest.skip("this root may not make a mount namespace")
    assert ran.returncode == 0, ran.stderr

"""Scenarios in a process of their own: what they do to limits and mounts ends with them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.processes import ROOT
from tests.support.until import patience

LIMIT_S = 18
AS_ROOT = () if os.geteuid() == 0 else ("--map-root-user",)
OWN_MOUNTS = ("unshare", *AS_ROOT, "--mount")
"""A start in which `mount` is seen by nobody else, and needs no right to it."""


def run_apart(
    scenario: Callable[..., object],
    *args: str | Path,
    start: Sequence[str] = (),
    events: Sequence[str] = (),
) -> None:
    """Call a function of a test module in a child, and see that it returns and warns of nothing.

    Args:
        scenario: plain or async; it gets its arguments as text.
        args: such as a directory.
        start: words before the interpreter.
        events: all that is logged, by the names.
    """
    named = (scenario.__module__, scenario.__name__, *map(str, args))
    ran = subprocess.run(
        [*start, sys.executable, "-W", "error", "-m", "tests.apps.apart", *named],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=patience(LIMIT_S),
        check=False,
    )
    logged = tuple(line.partition(" ")[0] for line in ran.stderr.splitlines())
    assert (ran.returncode, logged) == (0, tuple(events)), ran.stderr


def mount_tmpfs(directory: str, options: str) -> None:
    """Mount a filesystem in memory, or change the options of the one that is there."""
    again = "remount," if os.path.ismount(directory) else ""
    mount("-t", "tmpfs", "-o", again + options, "tmpfs", directory)


def unmount(directory: str | Path) -> None:
    """Take a filesystem away, whoever still has files open there."""
    subprocess.run(["umount", "--lazy", directory], check=True)  # noqa: S607 (as below)


def mount(*words: str | Path) -> None:
    """Run ``mount``."""
    subprocess.run(["mount", *words], check=True)  # noqa: S607 (wherever the system has it)

"""Counts the instructions of another process, which runs under callgrind.

A count depends on neither the machine's speed nor on what else it does.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import anyio

ANSWER_SECONDS = 120
IDLE_SECONDS = 4


class CountingError(RuntimeError):
    """Valgrind is missing, or did not give a count."""


def found(program: str) -> str:
    """Return the path of a program of valgrind's package.

    Raises:
        CountingError: it is not installed.
    """
    path = shutil.which(program)
    if path is None:
        raise CountingError(f"{program} is not installed: run `make valgrind`")
    return path


class Callgrind:
    """A process to be started with `command` in front, which is then asked for its counts.

    Args:
        directory: where the counts are written. It must be empty.
    """

    def __init__(self, directory: Path) -> None:
        self._valgrind, self._vgdb = found("valgrind"), found("vgdb")
        self._out = directory / "callgrind.out"
        self._number = 0

    @property
    def command(self) -> list[str]:
        """The program and its options that start a program under callgrind."""
        return [self._valgrind, "--quiet", "--tool=callgrind", f"--callgrind-out-file={self._out}"]

    def count(self, pid: int) -> int:
        """Return how many instructions the process has run since it was asked last.

        Raises:
            CountingError: it does not answer, or has not written a count.
        """
        self._number += 1
        asked = subprocess.run(
            [self._vgdb, f"--pid={pid}", "dump"], capture_output=True, timeout=ANSWER_SECONDS
        )
        path = self._out.with_name(f"{self._out.name}.{self._number}")
        if asked.returncode or not path.exists():
            said = asked.stderr.decode(errors="replace").strip()
            raise CountingError(f"process {pid} has written no count to {path}: {said}")
        for line in reversed(path.read_text(encoding="utf-8", errors="replace").splitlines()):
            name, _, number = line.partition(": ")
            if name == "totals":
                return int(number)
        raise CountingError(f"{path} has no line of totals")


class Meter:
    """The instructions that a process runs for who calls it, without those that the clock brings.

    Args:
        callgrind: what the process was started with.
        pid: the process.
    """

    def __init__(self, callgrind: Callgrind, pid: int) -> None:
        self._callgrind = callgrind
        self._pid = pid
        self._idle_rate = 0.0
        self._began = 0.0

    async def calibrate(self) -> None:
        """See how many instructions the process runs in a second when nobody calls it."""
        self._idle_rate = 0.0
        self.begin()
        await anyio.sleep(IDLE_SECONDS)
        self._idle_rate = self.end() / IDLE_SECONDS

    def begin(self) -> None:
        """Count from now on."""
        self._callgrind.count(self._pid)
        self._began = time.monotonic()

    def end(self) -> float:
        """Return the instructions since the last call of either, and begin anew."""
        count = self._callgrind.count(self._pid)
        began, self._began = self._began, time.monotonic()
        return count - (self._began - began) * self._idle_rate

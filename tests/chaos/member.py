"""A worker or producer of a run: a process that is started again when it ends before its time."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from tests.crash.crew import CrashWorker

SLOT_WORD = "multiprocessing.spawn"
TRACKER_WORD = "resource_tracker"
"""What the command lines of a slot's process, and of Python's helper beside it, hold."""


class Member:
    """One of the crew.

    Args:
        name: of it and of all who follow it.
        start: starts a process; it gets the process's own name; None when there is nothing to do.

    Attributes:
        process: the one of the moment.
        unasked: which ended by themselves, and how.
    """

    def __init__(self, name: str, start: Callable[[str], CrashWorker]) -> None:
        self.name = name
        self.starts = 0
        self.unasked: list[str] = []
        self._start = start
        self._is_asked = False
        self.process: CrashWorker = self._next()

    def _next(self) -> CrashWorker:
        self.starts += 1
        self._is_asked = False
        return self._start(f"{self.name}-{self.starts}")

    def look_after(self) -> None:
        """Start it again if it has ended."""
        code = self.process.returncode
        if code is None:
            return
        # SIGKILL is a fault, or the deed of a job.
        if not self._is_asked and code != -signal.SIGKILL:
            self.unasked.append(f"{self.process.label} exit {code}")
        self.process = self._next()

    def ask(self) -> CrashWorker:
        """Send SIGTERM; return the process that is to end of it."""
        self._is_asked = True
        self.process.term()
        return self.process

    def family(self) -> list[psutil.Process]:
        """Return it and what it supervises."""
        with suppress(psutil.NoSuchProcess):
            return [psutil.Process(self.process.pid), *self.supervised()]
        return []

    def slots(self) -> list[psutil.Process]:
        """Return the processes of its slots."""
        return [child for child in self._below() if SLOT_WORD in words_of(child)]

    def supervised(self) -> list[psutil.Process]:
        """Return the workers that it supervises, and not the process that checks the app first."""
        helpers = (SLOT_WORD, TRACKER_WORD)
        below = [c for c in self._below() if not any(word in words_of(c) for word in helpers)]
        return [child for child in below if not is_check(child)]

    def _below(self) -> list[psutil.Process]:
        try:
            found: list[psutil.Process] = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        return found


def words_of(process: psutil.Process) -> str:
    """Return a process's command line, "" of one that is gone."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def is_check(process: psutil.Process) -> bool:
    """Whether a process only looks whether a worker could start."""
    with suppress(psutil.Error):
        return "HEADRACE_WORKER_CHECK" in process.environ()
    return True


def processes_of(directory: Path) -> Iterator[psutil.Process]:
    """Yield every process that works in a directory, whoever started it."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            is_of_it = process.environ().get("CHAOS_DIRECTORY") == str(directory)
            if is_of_it and process.pid != os.getpid():
                yield process

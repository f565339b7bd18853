"""Programs that start further processes, and are killed together with all of these."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType

import psutil

from tests.support.processes import WorkerProcess, kill_all


class ProcessTree(WorkerProcess):
    """A child and whatever it starts; all of it is in the session of which the child is the leader.

    The process group is not enough: Spark's Python workers make one of their own.
    """

    @property
    def members(self) -> list[psutil.Process]:
        """All of its processes that have not ended."""
        return list(_running_in(self.pid))

    @property
    def python_workers(self) -> list[psutil.Process]:
        """The processes in which Spark runs Python at this moment, or keeps for the next task."""
        return [process for process in self.members if _is_python_worker(process)]

    def kill_all(self) -> None:
        """Send SIGKILL to every process, and return once none is left."""
        while members := self.members:
            kill_all(members)
            self.returncode  # noqa: B018 (which takes note of the end of the child itself)
            psutil.wait_procs(members, timeout=1)

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill_all()
        super().__exit__(exc_type, exc, traceback)


def _running_in(session: int) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def _is_python_worker(process: psutil.Process) -> bool:
    """Whether it was forked by the process that Spark forks them from."""
    with suppress(psutil.NoSuchProcess):
        parent = process.parent()
        return parent is not None and _is_daemon(process) and _is_daemon(parent)
    return False


def _is_daemon(process: psutil.Process) -> bool:
    return "pyspark.daemon" in process.cmdline()

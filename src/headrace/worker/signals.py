"""What a worker process does at each signal. Only the program's own main thread may use this.

Plain handlers and not the loop's: those run when the loop turns, and the third signal must end a
process whose loop a handler blocks.
"""

from __future__ import annotations

import os
import signal
from types import FrameType, TracebackType
from typing import Self

from headrace.forks import handle, release_signals
from headrace.worker.worker import Worker


def stopping() -> list[signal.Signals]:
    """Return the signals that stop a worker.

    SIGHUP is one, since a terminal that is closed sends it; under ``nohup`` it is ignored from the
    start, and stays so.
    """
    is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGTERM, signal.SIGINT, *([] if is_ignored else [signal.SIGHUP])]


class Signals:
    """Handles signals inside its ``with`` block; afterwards the former handlers are back.

    The first SIGTERM, SIGINT or SIGHUP gives running jobs the grace, the second puts them back
    now, the third ends the process at once with status 128 + signal: other workers take its jobs
    over when the lease ends. SIGTSTP makes the worker quiet. Before there is a worker, while its
    app is imported, the first one ends the process at once with 0: nothing has begun.
    """

    def __init__(self) -> None:
        self._worker: Worker | None = None
        self._received = 0
        self._is_quiet = False

    def obey(self, worker: Worker) -> None:
        """Pass on to this worker what comes from now on."""
        self._worker = worker
        if self._is_quiet:
            worker.quiet()

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        self._received += 1
        if self._worker is None:
            os._exit(0)
        if self._received > 2:
            os._exit(128 + number)
        self._worker.stop()

    def _quiet(self, _number: int, _frame: FrameType | None) -> None:
        self._is_quiet = True
        if self._worker is not None:
            self._worker.quiet()

    def __enter__(self) -> Self:
        for number in stopping():
            handle(number, self._stop)
        handle(signal.SIGTSTP, self._quiet)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        release_signals()

"""Stands in front of a worker that is process 1, as in a container.

Orphans become children of process 1, which must wait for them, while a worker waits only for
processes of its own, and must not take their exit codes from those who started them. So process 1
forks: the child is the worker, and it waits for all that ends and passes signals on.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

SI_KERNEL = 0x80
"""Who sent a signal: the kernel, for what is typed in a terminal too."""

TYPED = {signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP}
"""What a terminal sends to all processes of its foreground group, and so to the worker too."""

NOT_FOR_IT = {signal.SIGCHLD, signal.SIGTTIN, signal.SIGTTOU, signal.SIGPIPE}


def stand_in_front() -> None:
    """Go on in a child if this is process 1; that itself ends as the child does.

    Call it before there are threads, and before anything handles signals.
    """
    if os.getpid() != 1 or sys.platform != "linux":
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would take exit codes away
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    _wait_for(child)


def _wait_for(child: int) -> NoReturn:
    while True:
        received = signal.sigwaitinfo(signal.valid_signals())
        number = received.si_signo
        is_there_too = received.si_code == SI_KERNEL and number in TYPED
        if number not in NOT_FOR_IT and not is_there_too:
            with suppress(ProcessLookupError):
                os.kill(child, number)
        _reap(child)


def _reap(child: int) -> None:
    """Wait for what has ended, and end if the child is among it."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)

"""Has a spawned process end with the one that started it, however that ends.

On Linux it is armed before it has run anything of the program's. Elsewhere, and once the parent
has died unseen, a thread notices, which starts when the program's main module is imported.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from multiprocessing import connection, parent_process
from typing import Any

_ARM = """(
    __import__("sys").platform == "linux"
    and __import__("ctypes").CDLL(None).prctl({pdeathsig}, {kill}),
    __import__("os").getppid() == {parent} or __import__("os")._exit(1),
    {name!r},
)[2]"""

PR_SET_PDEATHSIG = 1


class ArmedName(str):
    """The name of a process to be spawned, which arms that when it is read there.

    It is the first thing that such a process reads from its parent, and the only part of it that
    is ours. What it evaluates is the standard library's: the path to us is not set up yet. Before
    it is read, a process whose parent has died reads the end of the pipe, and ends.
    """

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        code = _ARM.format(
            pdeathsig=PR_SET_PDEATHSIG,
            kill=int(signal.SIGKILL),
            parent=os.getpid(),
            name=str(self),
        )
        return eval, (code,)


def watch_parent(parent: int) -> None:
    """Have a thread end this process with its parent.

    A handler that holds the interpreter's lock for ever keeps the thread from running.

    Args:
        parent: the process id that it must have.
    """
    worker = parent_process()
    if worker is None or os.getppid() != parent:
        os._exit(1)
    threading.Thread(
        target=_watch, args=(worker.sentinel,), name="headrace-parent", daemon=True
    ).start()


def _watch(sentinel: int) -> None:
    connection.wait([sentinel])
    os.kill(os.getpid(), signal.SIGKILL)

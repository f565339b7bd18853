"""What a worker process does at each signal. Only the program's own main thread may use this.

Plain handlers and not the loop's: those run when the loop turns, and the third signal must end a
process whose loop a handler blocks.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import ExitStack
from types import FrameType

from headrace.worker.worker import Worker

STOPPING = (signal.SIGTERM, signal.SIGINT)


async def run_with_signals(worker: Worker) -> None:
    """Run the worker until a signal stops it.

    The first SIGTERM or SIGINT gives running jobs the grace, the second hands them back now, the
    third ends the process at once with status 128 + signal: other workers take its jobs over when
    the lease ends. SIGTSTP makes the worker quiet. The former handlers are back when this returns.

    Raises:
        StorageError: as `Worker.run`.
    """
    loop = asyncio.get_running_loop()
    received = 0

    def stop(number: int, _frame: FrameType | None) -> None:
        nonlocal received
        received += 1
        if received > 2:
            os._exit(128 + number)
        loop.call_soon_threadsafe(worker.stop)

    def quiet(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(worker.quiet)

    with ExitStack() as handlers:
        for number in STOPPING:
            handlers.callback(signal.signal, number, _set(number, stop))
        handlers.callback(signal.signal, signal.SIGTSTP, _set(signal.SIGTSTP, quiet))
        await worker.run()


def _set(number: signal.Signals, handler: signal._HANDLER) -> signal._HANDLER:
    """Set a handler and return the former one; one that Python did not set can't be set again."""
    return signal.signal(number, handler) or signal.SIG_DFL

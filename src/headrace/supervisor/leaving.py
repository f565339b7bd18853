"""The end of a worker process, even if something in it would hold it for ever."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from headrace.logs.log import write_line
from headrace.worker.worker import Worker

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

EXIT_CUT_OFF = 6
"""The exit code of a process that ended although something in it went on."""

LEAVE_S = 5.0
"""How long tasks, threads and processes that are not the worker's own may hold the process."""


def run_and_leave(
    worker: Worker,
    runner: asyncio.Runner,
    main: Coroutine[Any, Any, None],
    *,
    message_of: Callable[[BaseException], str],
) -> None:
    """Run the program's main coroutine, in which the worker runs, and see that the process can end.

    Handlers that were given up are cut off at once. What else may hold the process, such as a
    thread of ``asyncio.to_thread`` or a process of ``multiprocessing``, has five seconds. The exit
    code is 6 in both cases.

    Args:
        worker: what runs.
        runner: has the event loop.
        main: the coroutine.
        message_of: returns what an error says, for the log of what was cut off.

    Raises:
        Exception: what the coroutine raised.
    """
    error = ""
    try:
        runner.run(main)
    except BaseException as raised:
        error = message_of(raised)
        raise
    finally:
        if worker.stuck:
            cut_off(worker.name, stuck=worker.stuck, error=error)
        is_free = threading.Event()
        threading.Thread(
            target=_cut_off_later, args=(worker, is_free), name="headrace-leave", daemon=True
        ).start()
        # Waits for tasks that swallow their cancellation, as the interpreter does for threads.
        runner.close()
        if not _threads() and not _processes():
            is_free.set()


def _cut_off_later(worker: Worker, is_free: threading.Event) -> None:
    if not is_free.wait(LEAVE_S):
        cut_off(worker.name, stuck=worker.stuck, error="")


def cut_off(name: str, *, stuck: int, error: str) -> NoReturn:
    """End the process at once, with what handlers have started by ``multiprocessing``.

    Args:
        name: the worker's.
        stuck: how many handlers go on.
        error: why it ends, "" if it was asked to.
    """
    processes = _processes()
    fields: dict[str, Any] = {"error": error} if error else {}
    if processes:
        fields["processes"] = [process.pid for process in processes]
    write_line(
        logging.ERROR, "worker.cut_off", worker=name, stuck=stuck, threads=_threads(), **fields
    )
    for process in processes:
        process.kill()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()  # a handler may have printed
    os._exit(EXIT_CUT_OFF)


def _threads() -> list[str]:
    """Return the names of the threads that the interpreter waits for at its end."""
    return [
        thread.name
        for thread in threading.enumerate()
        if not thread.daemon and thread is not threading.main_thread()
    ]


def _processes() -> list[BaseProcess]:
    """Return what the interpreter would wait for in the same way, if anything has started some."""
    multiprocessing = sys.modules.get("multiprocessing")
    return [] if multiprocessing is None else multiprocessing.active_children()

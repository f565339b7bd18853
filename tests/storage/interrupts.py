"""Ctrl-C in the middle of a call."""

from __future__ import annotations

import os
import signal
import sys
import threading

INNERMOST = {"_read", "wait"}
"""The functions in which a blocking storage waits for an answer."""


def interrupt_when_it_waits() -> threading.Thread:
    """Send this process SIGINT as soon as its main thread waits for the answer to a call."""
    main = threading.main_thread().ident
    assert main is not None

    def work() -> None:
        while not _waits(main):
            continue
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def _waits(thread: int) -> bool:
    frame = sys._current_frames().get(thread)  # noqa: SLF001
    if frame is None or frame.f_code.co_name not in INNERMOST:
        return False
    while frame is not None and frame.f_code.co_name != "at_once":
        frame = frame.f_back
    return frame is not None

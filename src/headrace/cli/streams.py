"""Makes the standard streams fit to use, also those that are closed or that nobody reads."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TextIO


def prepare() -> None:
    """Give a closed stream an empty one, so that nothing else is opened in its place.

    A descriptor below 3 that is free would be the next connection's, and whoever writes to standard
    error, a child or a library in C, would write into that.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, _empty(number))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # What a job holds may have no character in the terminal's encoding.
            stream.reconfigure(errors="backslashreplace")


def _empty(number: int) -> TextIO:
    descriptor = os.open(os.devnull, os.O_RDWR)
    if descriptor != number and not _is_open(number):
        os.dup2(descriptor, number)
        os.close(descriptor)
        descriptor = number
    elif descriptor == number:
        os.set_inheritable(descriptor, True)  # noqa: FBT003 (its only form)
    return open(descriptor, "r" if number == 0 else "w", encoding="utf-8", closefd=False)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def drop_output() -> None:
    """Drop what could not be written, of which the interpreter would complain at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

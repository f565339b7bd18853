"""The one way in which tests wait for something that gives no event."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar, overload

import anyio

T = TypeVar("T")

POLL_SECONDS = 0.005
RUNNABLE = Path("/proc/loadavg")


def patience(seconds: float) -> float:
    """Return how long to wait here for what takes at most ``seconds`` on a machine that is free.

    Where a core is shared by six, a second of work takes six: a bound that holds on a quiet machine
    then says the same of a busy one.
    """
    runnable = os.getloadavg()[0]
    with suppress(OSError):  # where there is no such file, or no descriptor left to read it
        # Of the last minute, and at this moment.
        runnable = max(runnable, int(RUNNABLE.read_text().split()[3].partition("/")[0]))
    return seconds * max(1.0, runnable / (os.cpu_count() or 1))


@overload
async def until(
    predicate: Callable[[], Awaitable[T]], *, within: float = ..., what: str = ...
) -> T: ...
@overload
async def until(predicate: Callable[[], T], *, within: float = ..., what: str = ...) -> T: ...
async def until(predicate: Callable[[], object], *, within: float = 5.0, what: str = "") -> object:
    """Call the predicate, plain or async, every 5 ms until its value is true, and return it.

    Raises:
        AssertionError: it was still false after ``within`` seconds, longer on a busy machine; the
            message has the last value.
    """
    started_at = time.monotonic()
    while True:
        value = predicate()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        waited = time.monotonic() - started_at
        if waited > within and waited > patience(within):
            raise AssertionError(f"{what or 'the condition'}: {value!r} after {waited:.3g} s")
        await anyio.sleep(POLL_SECONDS)

"""Warns of calls that block a running event loop."""

from __future__ import annotations

import asyncio
import builtins
import sys
import warnings
from itertools import count
from types import FrameType

_PACKAGE = "headrace."
_calls = count()


def warn_of_loop() -> None:
    """Warn, once in a process, if an event loop runs in this thread.

    Not in IPython, whose cells run in one all the same and wait for nothing else.
    """
    # None where no loop runs; `get_running_loop` would raise, which takes ten times as long.
    if asyncio._get_running_loop() is None or hasattr(builtins, "__IPYTHON__"):  # noqa: SLF001
        return
    if next(_calls) == 0:
        warnings.warn(
            "a SyncApp was called from a coroutine: it blocks the event loop, and all that runs in "
            "it, until the storage answers. Await the same call of the async app there, as in "
            "`await app.task_ref(name).enqueue(...)` of its `app`; or call it in a thread, by "
            "`await asyncio.to_thread(...)`. This is said once.",
            RuntimeWarning,
            stacklevel=_levels(),
        )


def _levels() -> int:
    """Return how far up the first frame is that is not of this package."""
    level = 1
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 (inspect.currentframe is the same)
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level

"""Starts what lasts as long as an event loop, and that no caller waits for or owns.

So it outlives any task group, and is ended by who started it, or with the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


def start(coroutine: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
    """Start a task in the running loop; keep it, or it may be collected half-way."""
    task = asyncio.create_task(coroutine, name=name)
    # A loop that a program closes by hand cancels nothing, and then asyncio complains of every task
    # that was left. Of this one it is no mistake; asyncio says so of tasks of its own likewise.
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001
    return task

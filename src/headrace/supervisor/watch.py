"""Replaces the workers when their code has changed."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.abc

from headrace.logs.log import write_line
from headrace.supervisor.crew import Crew
from headrace.supervisor.supervisor import Supervisor

Changes = AsyncIterator[set[tuple[Any, str]]]
"""What has changed, once the files rest; paths are second."""


async def follow(
    crew: Crew,
    supervisor: Supervisor,
    folders: Sequence[str],
    changes: Changes,
    *,
    task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Replace the workers on every change that leaves the code fit to be imported."""
    write_line(logging.INFO, "watch.started", folders=list(folders))
    # The watch begins before a worker reads the first file: nothing is awaited in between.
    task_status.started()
    async for found in changes:
        write_line(logging.INFO, "watch.changed", files=sorted({_short(path) for _, path in found}))
        code = await supervisor.check()
        if crew.is_ending:
            return
        if code:
            write_line(logging.ERROR, "watch.refused", kept=crew.is_running)
        else:
            crew.replace()


def _short(path: str) -> str:
    return os.path.relpath(path) if Path(path).is_relative_to(Path.cwd()) else path

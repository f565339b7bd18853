"""Runs ``headrace worker --burst`` over some jobs, for what it logs."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from headrace import App
from tests.support.processes import ROOT
from tests.support.until import patience

LIMIT_S = 60

Call = tuple[str, str, dict[str, Any]]
"""A task's name, its queue, and the arguments."""


class Burst:
    """What a worker logged from its start to its end."""

    def __init__(self, text: str) -> None:
        self.text = text

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The lines of ``--log-format json``: all that was written is one of them."""
        return [json.loads(line) for line in self.text.splitlines()]

    def of(self, event: str) -> list[dict[str, Any]]:
        """Return the lines of an event."""
        return [line for line in self.lines if line["event"] == event]


async def _enqueue(url: str, calls: Iterable[Call]) -> None:
    async with App(url) as app:
        for task, queue, arguments in calls:
            await app.enqueue(task, queue=queue, **arguments)


def burst(
    directory: Path, app: str, calls: Iterable[Call], *words: str, **environment: str
) -> Burst:
    """Enqueue jobs, and let a worker run all of them; return what it wrote to standard error."""
    url = f"file://{directory}/data"
    asyncio.run(_enqueue(url, calls))
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "worker", app, "--burst", *words],
        cwd=ROOT,
        env={**kept, "HEADRACE_REDIS_URL": url, **environment},
        capture_output=True,
        text=True,
        timeout=patience(LIMIT_S),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Burst(done.stderr)

"""An app whose handlers leave orphans; its import takes as long as the file ``SHUT`` is there."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from pathlib import Path

from headrace import App

SHUT = os.environ.get("SHUT", "")
QUEUE = "work"

if SHUT:
    Path(f"{SHUT}-{os.getpid()}.imports").touch()
    while Path(SHUT).exists():
        time.sleep(0.01)

app = App()


@app.task(name="orphan", queue=QUEUE)
async def orphan() -> int:
    """Start a process that outlives the one that started it for a moment, and return its id."""
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", "sleep 0.05 & echo $!", stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, "its exit code was taken away"
    return int(out)


@app.task(name="own", queue=QUEUE)
def own(code: int) -> int:
    """Start a process, and return its exit code."""
    return subprocess.run(["sh", "-c", f"exit {code}"], check=False).returncode  # noqa: S607


@app.task(name="process", queue=QUEUE)
async def process() -> int:
    """Return the process id that the handler sees."""
    return os.getpid()

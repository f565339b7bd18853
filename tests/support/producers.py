"""Processes that enqueue at one moment, and what each of their calls was told."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


async def told_in_processes(module: str, url: str, *, processes: int, each: int) -> list[str]:
    """Run a module in some processes, let them go at once, and return all the lines they write.

    It is given the URL, how many calls it makes, and a name of its own. It says that it is ready,
    and waits for a line.
    """
    running = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module, url, str(each), f"p{number}"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=ROOT,
        )
        for number in range(processes)
    ]
    for process in running:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
    told: list[str] = []
    for out, _ in await asyncio.gather(*(process.communicate(b"go\n") for process in running)):
        told += out.decode().splitlines()
    return told

"""A program with process slots that ends in one way or another, or is killed.

    python -m tests.apps.slots_parent <how> <folder>

It writes the process ids of its children to ``<folder>/pids`` once one of two is busy.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.apps import process_app as handlers
from tests.apps.process_app import touch
from tests.support.until import until
from tests.worker.slots import Crew, children, claimed, crew_of


async def busy(crew: Crew, folder: Path) -> None:
    """Have one child busy with something that only the kernel can stop, and one idle."""
    await crew.full()
    here = folder / "here"
    await crew.start(claimed(handlers.hold_lock, {"path": str(here)}))
    await until(here.exists, within=20)
    (folder / "children").write_text(" ".join(str(child.pid) for child in children()))
    touch(str(folder / "pids"))


async def serve(folder: Path) -> None:
    """Wait to be killed."""
    async with crew_of(handlers.app, slots=2) as crew:
        await busy(crew, folder)
        await asyncio.Event().wait()


async def finish(folder: Path) -> None:
    """End as a worker does."""
    async with crew_of(handlers.app, slots=2) as crew:
        await busy(crew, folder)


def abandon(folder: Path) -> None:
    """Leave the loop as it is."""
    loop = asyncio.new_event_loop()
    crew: list[Crew] = []

    async def begin() -> None:
        crew.append(Crew(handlers.app, slots=2))
        crew[0].serving = asyncio.create_task(crew[0].processes.serve())
        await busy(crew[0], folder)

    loop.run_until_complete(begin())


def main() -> None:
    """Do what the arguments say."""
    how, folder = sys.argv[1], Path(sys.argv[2])
    if how == "abandon":
        abandon(folder)
    else:
        asyncio.run({"serve": serve, "finish": finish}[how](folder))


if __name__ == "__main__":
    main()

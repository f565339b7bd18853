"""Several worker processes of one command: how tests start them, find them, and leave none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from headrace import JobHandle
from tests.apps.crew_app import QUEUE
from tests.cli.workers import START_S, Site
from tests.support.processes import WorkerProcess, kill_all
from tests.support.until import until

APP = "tests.apps.crew_app"


class Yard(Site):
    """A site whose workers are several processes."""

    def __init__(self, url: str, directory: Path) -> None:
        super().__init__(url, directory)
        self.notes = directory / "notes"
        self.notes.mkdir()
        self.environment["CREW_NOTES"] = str(self.notes)

    @contextmanager
    def crew(self, count: int, *words: str, app: str = APP, **env: str) -> Iterator[WorkerProcess]:
        """Run a supervisor; afterwards nothing of it is left, however the block ends."""
        with self.start("--processes", str(count), *words, app=app, **env) as supervisor:
            try:
                yield supervisor
            finally:
                kill_all(members(self))

    async def started(self, task: str, number: int = 0) -> tuple[JobHandle[Any], int]:
        """Enqueue a job that notes its process, and return both once it runs."""
        path = self.notes / f"job-{number}"
        job = await self.enqueue(task, path=str(path))
        await until(path.exists, within=START_S, what="the handler runs")
        return job, int(path.read_text())

    def let_end(self, number: int = 0) -> None:
        """Let such a job end."""
        (self.notes / f"job-{number}.release").touch()

    def imported(self) -> set[int]:
        """Return which processes have imported the app."""
        return {int(path.name.partition("-")[2]) for path in self.notes.glob("imported-*")}

    async def workers(self, count: int, *, queue: str = QUEUE) -> set[int]:
        """Wait until so many workers are there and none is dead; return their process ids."""

        async def look() -> set[int]:
            found = await self.app.queue(queue).workers()
            pids = {worker.pid for worker in found if psutil.pid_exists(worker.pid)}
            return pids if len(found) == len(pids) == count else set()

        return await until(look, within=START_S, what=f"there are {count} workers")


def members(site: Site) -> list[psutil.Process]:
    """Return the processes that work for a site, whoever started them."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("HEADRACE_TENANT") == site.environment["HEADRACE_TENANT"]:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return [process for process in found if process.pid != os.getpid()]


async def nobody_is_left(site: Site) -> None:
    """Wait until no process works for a site."""
    await until(lambda: not members(site), within=START_S, what="no process is left")

"""Worker processes of the command line on one storage, jobs for them, and what they log."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from headrace import App, JobHandle, JobSummary
from tests.apps.operate_app import QUEUE
from tests.support.processes import WorkerProcess
from tests.support.until import until

APP = "tests.apps.operate_app"
START_S = 30.0


S = TypeVar("S", bound="Site")


class Site:
    """A storage with a tenant of its own, and a directory for notes and logs."""

    def __init__(self, url: str, directory: Path) -> None:
        self.environment = {
            "HEADRACE_REDIS_URL": url,
            "HEADRACE_TENANT": f"site-{secrets.token_hex(6)}",
        }
        self.directory = directory
        self.note = directory / "note"
        self.app: App[None] = App(url, tenant=self.environment["HEADRACE_TENANT"])
        self._started = 0

    def start(self, *words: str, app: str = APP, **env: str) -> WorkerProcess:
        """Start ``headrace worker`` with a short lease and JSON logs."""
        self._started += 1
        return WorkerProcess.module(
            "headrace", "worker", app, "--lease", "2s", "--log-format", "json", *words,
            directory=self.directory, name=f"worker-{self._started}",
            env={**self.environment, **env},
        )  # fmt: skip

    async def enqueue(self, task: str, **arguments: Any) -> JobHandle[Any]:
        return await self.app.enqueue(task, queue=QUEUE, **arguments)

    async def begin(self, task: str, **arguments: Any) -> JobHandle[Any]:
        """Enqueue a job that writes to the note, and wait until it runs."""
        job = await self.enqueue(task, note=str(self.note), **arguments)
        await until(lambda: self.said() == "started", within=START_S, what="the handler runs")
        return job

    def release(self) -> None:
        """Let the handler that holds end."""
        Path(f"{self.note}.release").touch()

    def reset(self) -> None:
        """Forget what was said and released."""
        self.note.unlink()
        Path(f"{self.note}.release").unlink()

    def said(self) -> str:
        """What the handler has written to the note."""
        return self.note.read_text() if self.note.exists() else ""

    async def jobs(self, state: str) -> list[JobSummary]:
        return [job async for job in self.app.queue(QUEUE).jobs(state)]


@asynccontextmanager
async def site_on(
    request: pytest.FixtureRequest, directory: Path, kind: type[S]
) -> AsyncIterator[S]:
    """Make a site on the kind of storage that a fixture is run with: ``redis`` or ``file``."""
    if request.param == "redis":
        url: str = request.getfixturevalue("redis_url")
    else:
        url = f"file://{directory}/data"
    site = kind(url, directory)
    async with site.app:
        yield site


def logged(worker: WorkerProcess, event: str) -> list[dict[str, Any]]:
    """Return the lines of one event in a worker's log; a line that is being written comes later."""
    lines = worker.stderr.splitlines(keepends=True)
    found = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]
    return [line for line in found if line["event"] == event]


async def log(worker: WorkerProcess, event: str, *, count: int = 1) -> dict[str, Any]:
    """Wait until a worker has logged an event so many times, and return the last."""
    await until(
        lambda: len(logged(worker, event)) >= count, within=START_S, what=f"{event} is logged"
    )
    return logged(worker, event)[-1]

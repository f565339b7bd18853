"""A worker that is process 1, as in a container, waits for orphans and loses no signal."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.cli.workers import START_S, Site, log, logged, site_on
from tests.support.processes import WorkerProcess
from tests.support.until import patience, until

APP = "tests.apps.orphans_app"
IN_FRONT = ("unshare", "--fork", "--pid", "--mount-proc", "--kill-child")


def can_unshare() -> bool:
    try:
        return subprocess.run([*IN_FRONT, "true"], check=False, timeout=10).returncode == 0
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not can_unshare(), reason="no process 1 can be made here")


class Container(Site):
    """A site whose workers are process 1 of a PID namespace."""

    @contextmanager
    def run(self, *words: str, **env: str) -> Iterator[WorkerProcess]:
        worker = WorkerProcess(
            *IN_FRONT, sys.executable, "-m", "headrace", "worker", APP,
            "--lease", "2s", "--log-format", "json", *words,
            directory=self.directory, env={**self.environment, **env},
        )  # fmt: skip
        with worker:
            yield worker

    async def first(self, worker: WorkerProcess) -> psutil.Process:
        """Return process 1, as it is seen from outside."""

        def look() -> psutil.Process | None:
            found = psutil.Process(worker.pid).children()
            return found[0] if found and "headrace" in found[0].cmdline() else None

        process = await until(look, within=START_S, what="process 1 is there")
        assert process is not None
        return process


def defunct(top: psutil.Process) -> list[int]:
    """Return the processes below that have ended and that nobody has waited for."""
    found = []
    for process in [top, *top.children(recursive=True)]:
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.NoSuchProcess:
            continue
    return found


@pytest.fixture(params=["redis"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Container]:
    async with site_on(request, tmp_path, Container) as site:
        yield site


@pytest.mark.parametrize(
    "words", [("--loop", "asyncio"), ("--loop", "uvloop"), ("--processes", "2")]
)
async def test_orphans_of_jobs_are_waited_for(site: Container, words: tuple[str, ...]) -> None:
    with site.run(*words) as worker:
        first = await site.first(worker)
        jobs = [await site.enqueue("orphan") for _ in range(10)]
        for job in jobs:
            await job.result(timeout=patience(START_S))
        codes = [
            await (await site.enqueue("own", code=code)).result(timeout=patience(START_S))
            for code in (0, 3)
        ]
        assert codes == [0, 3]
        await until(lambda: not defunct(first), within=START_S, what="no orphan is left")
        first.send_signal(signal.SIGTERM)
        assert await worker.wait(START_S) == 0
        assert logged(worker, "worker.stopped")


@pytest.mark.parametrize("count", [1, 2])
async def test_a_signal_during_the_import_ends_it(site: Container, count: int) -> None:
    shut = site.directory / "shut"
    shut.touch()
    with site.run("--processes", str(count), SHUT=str(shut)) as worker:
        first = await site.first(worker)
        await until(lambda: list(site.directory.glob("*.imports")), within=START_S)
        first.send_signal(signal.SIGTERM)
        assert await worker.wait(START_S) == 0
        assert logged(worker, "worker.started") == []


async def test_so_it_does_where_the_worker_is_not_process_1(site: Container) -> None:
    shut = site.directory / "shut"
    shut.touch()
    with site.start(app=APP, SHUT=str(shut)) as worker:
        await until(lambda: list(site.directory.glob("*.imports")), within=START_S)
        worker.term()
        assert await worker.wait(START_S) == 0


async def test_a_signal_that_makes_it_quiet_is_passed_on(site: Container) -> None:
    with site.run() as worker:
        first = await site.first(worker)
        await log(worker, "worker.started")
        first.send_signal(signal.SIGTSTP)
        await log(worker, "worker.quiet")
        first.send_signal(signal.SIGHUP)
        assert await worker.wait(START_S) == 0


async def test_process_1_ends_as_its_worker_does(site: Container) -> None:
    with site.run() as worker:
        first = await site.first(worker)
        await log(worker, "worker.started")
        (child,) = first.children()
        child.kill()
        assert await worker.wait(START_S) == 128 + signal.SIGKILL

"""Commands and workers do without standard streams."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cli.workers import START_S, Site, site_on
from tests.support.processes import ROOT, WorkerProcess
from tests.support.until import patience

HEADRACE = f"exec {sys.executable} -m headrace"
APP = "tests.apps.operate_app"


@pytest.fixture(params=["redis"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    async with site_on(request, tmp_path, Site) as site:
        yield site


def shell(site: Site, line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell."""
    return subprocess.run(
        ["/bin/bash", "-c", line],
        cwd=ROOT,
        env={**os.environ, **site.environment},
        capture_output=True,
        text=True,
        timeout=patience(START_S),
        check=False,
    )


@pytest.mark.parametrize("closed", ["2>&-", ">&-", "<&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", [(), ("--processes", "2")], ids=["alone", "two"])
async def test_a_worker_runs_without_streams(
    site: Site, closed: str, words: tuple[str, ...]
) -> None:
    line = f"{HEADRACE} worker {APP} --lease 2s {' '.join(words)} {closed}"
    worker = WorkerProcess("bash", "-c", line, directory=site.directory, env=site.environment)
    with worker:
        jobs = [await site.enqueue("double", number=number) for number in range(20)]
        assert [await job.result(timeout=patience(START_S)) for job in jobs] == list(
            range(0, 40, 2)
        )
        worker.term()
        assert await worker.wait(START_S) == 0
        assert "Traceback" not in worker.stderr


@pytest.mark.parametrize("closed", ["2>&-", ">&-", "<&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", ["queue list", "queue list -o json", "version", "health"])
async def test_a_command_ends_well_without_streams(site: Site, closed: str, command: str) -> None:
    await site.enqueue("double", number=1)
    done = shell(site, f"{HEADRACE} {command} {closed}")
    assert done.returncode == 0
    assert done.stderr == ""
    assert bool(done.stdout) == (">&-" not in closed.split())


async def test_an_error_has_its_exit_code_though_nobody_hears_it(site: Site) -> None:
    assert shell(site, f"{HEADRACE} job show nothing --queue work 2>&-").returncode == 1
    assert shell(site, f"{HEADRACE} queue lisst 2>&-").returncode == 2


async def test_output_that_can_t_be_written_is_an_error(site: Site) -> None:
    done = shell(site, f"{HEADRACE} version > /dev/full")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: OSError: [Errno 28] No space left on device")
    assert done.stderr.count("\n") == 1


def test_nobody_is_told_that_a_reader_has_had_enough() -> None:
    read, write = os.pipe()
    os.close(read)
    with open(write, "wb") as stdout:
        argv = [sys.executable, "-m", "headrace", "version"]
        done = subprocess.run(
            argv, stdout=stdout, stderr=subprocess.PIPE, timeout=patience(START_S), check=False
        )
    assert (done.returncode, done.stderr) == (1, b"")


def test_events_are_dropped_where_there_is_no_standard_error() -> None:
    program = """
import sys
sys.stderr = None
from headrace.events import LoopFailed
from headrace.logs.lines import log_events
from headrace.logs.setup import LogSetup, set_up
log_events()(LoopFailed(loop="fetch", error="x"))
set_up(LogSetup("console", "info"))
log_events()(LoopFailed(loop="fetch", error="x"))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=patience(30),
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

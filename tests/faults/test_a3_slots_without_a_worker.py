"""The process of a slot does not outlive a worker that is killed while it starts it; G14."""

from __future__ import annotations

import secrets
from pathlib import Path

import psutil
import pytest

from tests.cli.crews import Yard
from tests.support.processes import WorkerProcess
from tests.support.until import until

MARK = "ORPHAN_MARK"
PROGRAM = "tests.apps.orphan_parent"
WITHIN_S = 40.0


def marked(mark: str) -> list[psutil.Process]:
    """Return the running processes that have a variable of ours."""
    found = []
    for process in psutil.process_iter():
        try:
            is_there = process.status() != psutil.STATUS_ZOMBIE
            if is_there and process.environ().get(MARK) == mark:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


async def none_is_left(mark: str) -> None:
    await until(lambda: not marked(mark), within=WITHIN_S, what="no process is left")


@pytest.fixture
def mark() -> str:
    return secrets.token_hex(8)


async def test_a_process_that_imports_its_program_ends_with_the_worker(
    tmp_path: Path, mark: str
) -> None:
    # Nothing of ours has run there yet.
    note = tmp_path / "note"
    program = WorkerProcess.module(PROGRAM, "hang", str(note), directory=tmp_path, env={MARK: mark})
    with program as parent:
        await until(lambda: note.exists() and note.read_text(), within=WITHIN_S)
        parent.kill()
        await none_is_left(mark)


async def test_nobody_is_left_whenever_a_worker_is_killed(tmp_path: Path, mark: str) -> None:
    program = WorkerProcess.module(PROGRAM, "many", "30", directory=tmp_path, env={MARK: mark})
    with program as parent:
        assert await parent.wait(WITHIN_S) == 0
        await none_is_left(mark)


async def test_nor_when_a_supervisor_is_killed_while_the_app_is_imported(
    redis_url: str, tmp_path: Path, mark: str
) -> None:
    yard = Yard(redis_url, tmp_path)
    app = "tests.apps.slow_import_app"
    with yard.crew(2, app=app, **{MARK: mark}) as supervisor:
        await until(yard.imported, within=WITHIN_S, what="the check imports the app")
        supervisor.kill()
        await none_is_left(mark)

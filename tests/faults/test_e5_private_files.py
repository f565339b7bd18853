"""A database is its owner's alone, whatever the umask, unless the owner says otherwise."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from headrace import App, Worker
from tests.support.until import patience, until


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


async def noop() -> None:
    """Do nothing."""


async def modes(directory: Path) -> dict[str, int]:
    """Return who may use what a worker and a producer made in a directory, while both use it."""
    async with App(f"file://{directory}") as app:
        task = app.task(name="noop", queue="mail")(noop)
        worker = Worker(app, ["mail"], concurrency=1)
        async with anyio.create_task_group() as group:
            group.start_soon(worker.run)
            await (await task.enqueue()).result(timeout=patience(10))
            await until(lambda: (directory / "wake").exists(), within=10, what="it listens")
            found = modes_in(directory)
            worker.stop()
    return found


def modes_in(directory: Path) -> dict[str, int]:
    paths = [directory, *directory.rglob("*")]
    return {path.name: stat.S_IMODE(path.lstat().st_mode) for path in paths}


def strangers(found: dict[str, int], *, but: str) -> dict[str, int]:
    return {name: mode for name, mode in found.items() if mode & 0o077 and name != but}


@pytest.mark.usefixtures("umask")
async def test_what_lies_in_a_public_directory_is_private(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    directory.chmod(0o755)
    found = await modes(directory)
    assert {"headrace.sqlite3", "headrace.sqlite3-wal", "headrace.sqlite3-shm", "wake"} <= set(
        found
    )
    assert strangers(found, but="data") == {}
    assert found["headrace.sqlite3"] == 0o600
    assert found["data"] == 0o755


async def test_a_directory_that_is_made_is_private(tmp_path: Path) -> None:
    assert strangers(await modes(tmp_path / "data"), but="") == {}


async def test_a_database_that_a_group_shares_stays_so(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    directory.chmod(0o2770)
    database = directory / "headrace.sqlite3"
    database.touch()
    database.chmod(0o660)
    found = await modes(directory)
    files = {name: mode for name, mode in found.items() if name not in ("data", "wake")}
    assert set(files.values()) == {0o660}, found
    assert found["wake"] == 0o2770

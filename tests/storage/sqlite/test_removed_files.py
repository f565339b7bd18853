"""The files of a database are removed or replaced while processes use it."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace import App, Worker
from headrace.errors import StorageRefused
from headrace.events import QueueFenced
from headrace.storage.sqlite.engine.location import FILE_NAME
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.testing import EventLog, running
from headrace.testing.contract.steps import QUEUE, ContractClient, a_job, state_of


def remove_directory(directory: Path) -> None:
    shutil.rmtree(directory)


def remove_log(directory: Path) -> None:
    (directory / f"{FILE_NAME}-wal").unlink()


def replace_database(directory: Path) -> None:
    shutil.copy(directory / FILE_NAME, directory / "copy")
    os.replace(directory / "copy", directory / FILE_NAME)


def remake_directory(directory: Path) -> None:
    os.replace(directory, directory.with_name("old"))
    directory.mkdir()


def files_in(directory: Path) -> set[str]:
    return {path.name for path in directory.rglob("*")} if directory.exists() else set()


@pytest.mark.parametrize(
    "spoil", [remove_directory, remove_log, replace_database, remake_directory]
)
async def test_files_removed_under_a_process_are_refused_until_it_opens_them_anew(
    directory: Path, spoil: Callable[[Path], None]
) -> None:
    """Fault 52: nothing is written to a file that nobody else will ever see."""
    storage = SqliteStorage(f"file://{directory}").for_tenant("acme")
    client = ContractClient(storage)
    await client.enqueue(a_job("before"))
    spoil(directory)
    before = files_in(directory)
    for _ in range(2):
        with pytest.raises(StorageRefused, match="removed or replaced while it was in use"):
            await client.enqueue(a_job("lost"))
    with pytest.raises(StorageRefused, match="removed or replaced"):
        await storage.stats(QUEUE)
    assert files_in(directory) == before
    await storage.aclose()
    assert await ContractClient(storage).enqueue(a_job("after")) == ["queued"]
    assert await state_of(storage, "lost") is None
    assert (directory / FILE_NAME).exists()
    await storage.aclose()


async def test_a_worker_whose_directory_was_removed_ends_with_an_error(directory: Path) -> None:
    """It has nothing to wait for: a new process starts with what is there then."""
    app = App(f"file://{directory}")

    @app.task
    async def work() -> None: ...

    log = EventLog()

    async def lose_it() -> None:
        async with app, running(Worker(app, lease=0.6, sweep_interval=0.2, emit=log)):
            await work.enqueue_and_wait()
            shutil.rmtree(directory)
            await asyncio.Event().wait()

    with pytest.raises(BaseExceptionGroup) as raised:
        await lose_it()
    assert raised.group_contains(StorageRefused, match="was removed or replaced")
    assert log.of(QueueFenced)
    assert files_in(directory) == set()

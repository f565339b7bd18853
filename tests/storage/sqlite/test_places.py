"""Where a database may be, and what is said of a place that can't be used."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.errors import StorageFault, StorageRefused
from headrace.storage.sqlite.engine import database
from headrace.storage.sqlite.engine.location import FILE_NAME
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.testing.contract.steps import QUEUE, ContractClient, a_job


def as_file(directory: Path) -> None:
    directory.write_text("not a directory")


def not_a_database(directory: Path) -> None:
    directory.mkdir()
    (directory / FILE_NAME).write_bytes(b"something else entirely, and long enough to tell " * 20)


def of_another_program(directory: Path) -> None:
    directory.mkdir()
    with sqlite3.connect(directory / FILE_NAME) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()


def of_a_newer_release(directory: Path) -> None:
    directory.mkdir()
    with sqlite3.connect(directory / FILE_NAME) as connection:
        connection.execute(f"PRAGMA application_id = {database.APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 99")
    connection.close()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (as_file, "is a file: name a directory"),
        (not_a_database, "name another directory"),
        (of_another_program, "is of another program"),
        (of_a_newer_release, f"has schema 99, this release knows {database.SCHEMA}"),
    ],
)
async def test_a_place_that_can_not_be_used_is_refused(
    directory: Path, spoil: Callable[[Path], None], words: str, file_storage: SqliteStorage
) -> None:
    spoil(directory)
    with pytest.raises(StorageRefused, match=words):
        await file_storage.check()
    with pytest.raises(StorageRefused, match=words):
        await ContractClient(file_storage).enqueue(a_job())


async def test_a_directory_that_can_not_be_made_is_refused() -> None:
    storage = SqliteStorage("file:///proc/no-such/place").for_tenant("acme")
    with pytest.raises(StorageRefused):
        await storage.check()
    await storage.aclose()


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
async def test_a_network_filesystem_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, file_storage: SqliteStorage
) -> None:
    real = database.MOUNTS.read_text()
    mounts = tmp_path / "mountinfo"
    lines = [line.partition(" - ")[0] + f" - {kind} host:/ rw" for line in real.splitlines()]
    mounts.write_text("\n".join(lines))
    monkeypatch.setattr(database, "MOUNTS", mounts)
    with pytest.raises(StorageRefused, match=f"network filesystem \\({kind}\\)"):
        await file_storage.check()


def test_the_filesystem_of_a_directory_is_found(tmp_path: Path) -> None:
    assert database.filesystem(tmp_path) not in ("", *database.NETWORK_FILESYSTEMS)


def test_a_directory_is_made_for_its_owner_alone(directory: Path) -> None:
    database.check_directory(directory)
    assert directory.stat().st_mode & 0o777 == 0o700


async def test_a_deep_directory_works_with_its_sockets(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    first = SqliteStorage(f"file://{deep}").for_tenant("acme")
    second = SqliteStorage(f"file://{deep}?sync=normal").for_tenant("acme")
    waiter = first.open_waiter(QUEUE, "w1", "default")
    assert not await waiter.wait(0.01)
    await ContractClient(second).enqueue(a_job())
    assert await waiter.wait(2)
    await first.aclose()
    await second.aclose()


async def test_a_damaged_database_is_a_fault(directory: Path, file_storage: SqliteStorage) -> None:
    client = ContractClient(file_storage)
    for n in range(20):
        await client.enqueue(*(a_job(f"{n}-{m}", b"." * 200) for m in range(50)))
    await file_storage.aclose()
    path = directory / FILE_NAME
    data = bytearray(path.read_bytes())
    data[4096 * 2 :] = b"\xff" * (len(data) - 4096 * 2)
    path.write_bytes(data)
    with pytest.raises(StorageFault, match="restore it from a backup"):
        await client.enqueue(a_job("z"), number=999)

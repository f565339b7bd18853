"""One host a directory, as far as it can tell: each keeps a mark, which others look at."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from headrace.errors import StorageRefused
from headrace.job import JobState
from headrace.storage.sqlite.engine.hosts import BOOT_ID, FRESH_S, MACHINE_ID, PREFIX, HostMark
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.testing.contract.steps import ContractClient, a_job, state_of
from tests.storage.sqlite.apart import AS_ROOT, mount, run_apart

ELSEWHERE = ("unshare", *AS_ROOT, "--mount", "--uts")
"""A start with a name and a kernel's boot of its own, as far as these can be had."""


def become_another_host(directory: Path, *, boot: str, machine: str, name: str) -> None:
    for path, text in ((BOOT_ID, boot), (MACHINE_ID, machine)):
        other = directory / path.name
        other.write_text(text)
        if path.exists():
            mount("--bind", other, path)
    socket.sethostname(name)


def marks(directory: Path) -> list[Path]:
    return sorted(directory.glob(f"{PREFIX}*"))


async def use_it_elsewhere(place: str, directory: str) -> None:
    become_another_host(Path(place), boot="another-boot", machine="another", name="otherhost")
    storage = SqliteStorage(f"file://{directory}").for_tenant("acme")
    with pytest.raises(StorageRefused, match="in use by another host"):
        await ContractClient(storage, "theirs").enqueue(a_job("theirs"))
    with pytest.raises(StorageRefused, match="in use by another host"):
        await storage.check()
    await storage.aclose()
    (mark,) = marks(Path(directory))
    # Its host was silent for as long as that.
    long_ago = time.time() - 2 * FRESH_S
    os.utime(mark, (long_ago, long_ago))
    assert await ContractClient(storage, "theirs").enqueue(a_job("theirs")) == ["queued"]
    await storage.aclose()


async def test_a_second_host_is_refused_while_the_first_is_heard_of(
    directory: Path, tmp_path: Path, file_storage: SqliteStorage
) -> None:
    """RELIABILITY 6.16: SQLite's locks hold on one host, whatever the filesystem calls itself."""
    await ContractClient(file_storage).enqueue(a_job("ours"))
    (mark,) = marks(directory)
    run_apart(use_it_elsewhere, tmp_path, directory, start=ELSEWHERE)
    assert await state_of(file_storage, "theirs") is JobState.QUEUED
    assert mark.exists() is False


async def use_it_in_a_container(directory: str) -> None:
    socket.sethostname("container")
    storage = SqliteStorage(f"file://{directory}").for_tenant("acme")
    assert await ContractClient(storage, "theirs").enqueue(a_job("theirs")) == ["queued"]
    await storage.aclose()


async def test_containers_of_one_host_share_a_directory(
    directory: Path, file_storage: SqliteStorage
) -> None:
    """They have names of their own and one kernel, so that locks hold."""
    await ContractClient(file_storage).enqueue(a_job("ours"))
    run_apart(use_it_in_a_container, directory, start=ELSEWHERE)
    assert await state_of(file_storage, "theirs") is JobState.QUEUED
    assert len(marks(directory)) == 1


async def start_again(place: str, directory: str) -> None:
    machine = MACHINE_ID.read_text() if MACHINE_ID.exists() else ""
    name = os.uname().nodename
    become_another_host(Path(place), boot="a-later-boot", machine=machine, name=name)
    storage = SqliteStorage(f"file://{directory}").for_tenant("acme")
    assert await ContractClient(storage, "theirs").enqueue(a_job("next")) == ["queued"]
    assert [mark.name for mark in marks(Path(directory))] == [f"{PREFIX}a-later-boot"]
    await storage.aclose()


async def test_a_host_that_was_started_again_goes_on_at_once(
    directory: Path, tmp_path: Path, file_storage: SqliteStorage
) -> None:
    await ContractClient(file_storage).enqueue(a_job())
    run_apart(start_again, tmp_path, directory, start=ELSEWHERE)


async def test_the_last_process_that_ends_in_order_leaves_no_mark(
    directory: Path, file_storage: SqliteStorage, elsewhere: SqliteStorage
) -> None:
    """So a directory that moves to another host is used there at once."""
    await file_storage.check()
    await elsewhere.check()
    await file_storage.aclose()
    assert len(marks(directory)) == 1
    await elsewhere.aclose()
    assert marks(directory) == []


async def test_a_host_that_finds_another_while_it_works_stops(
    directory: Path, tmp_path: Path
) -> None:
    """Two that started at the same moment: neither goes on beside the other."""
    mark = HostMark(tmp_path)
    mark.check()
    other = tmp_path / f"{PREFIX}other"
    other.write_text("otherhost 1")
    mark.check()  # it looked a moment ago
    later = HostMark(tmp_path)
    with pytest.raises(StorageRefused, match=r"another host \(otherhost\).*delete .*host-other"):
        later.check()
    other.unlink()
    later.check()
    assert len(marks(tmp_path)) == 1

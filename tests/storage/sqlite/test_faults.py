"""Faults of the machine: full, read-only and failing disks, and limits of the process."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from headrace import App, Worker
from headrace.errors import StorageFault, StorageFull, StorageRefused, StorageUnavailable
from headrace.events import QueueFenced
from headrace.job import JobState
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.testing import EventLog, running
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    completed,
    state_of,
)
from tests.apps.apart import fail_fsync
from tests.storage.sqlite.apart import OWN_MOUNTS, mount_tmpfs, run_apart
from tests.support.until import patience, until

NOBODY = 65534
BIG = b"." * 100_000


def a_storage(directory: str) -> SqliteStorage:
    return SqliteStorage(f"file://{directory}").for_tenant("acme")


def fill(path: Path) -> None:
    """Write a file that takes all the room there is."""
    with pytest.raises(OSError, match="No space left"):
        path.write_bytes(bytes(4 << 20))


async def store_until_full(client: ContractClient) -> int:
    """Enqueue large jobs until one finds no room; return how many did."""
    for stored in range(1000):
        try:
            await client.enqueue(a_job(f"job-{stored}", BIG))
        except StorageFull:
            return stored
    raise AssertionError("the disk is never full")


async def fill_it_with_jobs(place: str) -> None:
    mount_tmpfs(place, "size=3m")
    storage = a_storage(f"{place}/data")
    client = ContractClient(storage)
    worker = await ContractIncarnation(storage, "w1").register()
    stored = await store_until_full(client)
    assert (await storage.stats(QUEUE)).queued == stored > 3
    mount_tmpfs(place, "size=30m")
    await client.enqueue(a_job("next", BIG))
    for _ in range(stored + 1):
        assert await worker.settle(await worker.claim_one(), completed())
    assert {finding.level for finding in await storage.diagnose()} == {"ok"}
    await storage.aclose()


def test_jobs_stored_before_the_disk_was_full_are_run_when_there_is_room(tmp_path: Path) -> None:
    """Fault 33, fault 52: on a real filesystem; it is a typed error, and nothing is lost."""
    run_apart(fill_it_with_jobs, tmp_path, start=OWN_MOUNTS)


async def fill_it_under_a_worker(place: str) -> None:
    mount_tmpfs(place, "size=3m")
    app = App(f"file://{place}/data")
    gate = asyncio.Event()

    @app.task
    async def large() -> str:
        await gate.wait()
        return "." * 50_000

    log = EventLog()
    async with app, running(Worker(app, lease=1.0, sweep_interval=0.2, emit=log)) as worker:
        handles = await app.enqueue_many(large.job() for _ in range(20))
        await until(lambda: worker.active == 20, within=10)
        fill(Path(place, "ballast"))
        gate.set()
        # It can't say that it lives either.
        await log.wait(QueueFenced, within=patience(10))
        os.unlink(f"{place}/ballast")
        for handle in handles:
            assert len(await handle.result(timeout=patience(10))) == 50_000
            record = await handle.status()
            assert (record.starts, record.stalls, record.failures) == (1, 0, 0)


def test_outcomes_of_a_worker_wait_for_room_longer_than_its_lease(tmp_path: Path) -> None:
    """G8, G9, fault 33: each is recorded once there is room, and no job runs again for it."""
    run_apart(fill_it_under_a_worker, tmp_path, start=OWN_MOUNTS)


async def open_it_on_a_full_disk(place: str) -> None:
    mount_tmpfs(place, "size=1m")
    storage = a_storage(f"{place}/data")
    fill(Path(place, "ballast"))
    for _ in range(2):
        with pytest.raises(StorageFull, match=r"disk is full|No space left"):
            await ContractClient(storage).enqueue(a_job())
    os.unlink(f"{place}/ballast")
    assert await ContractClient(storage).enqueue(a_job()) == ["queued"]
    await storage.aclose()


def test_a_database_that_was_opened_while_the_disk_was_full_works_when_there_is_room(
    tmp_path: Path,
) -> None:
    run_apart(open_it_on_a_full_disk, tmp_path, start=OWN_MOUNTS)


async def use_it_read_only(place: str) -> None:
    mount_tmpfs(place, "size=3m")
    storage = a_storage(f"{place}/data")
    await ContractClient(storage).enqueue(a_job())
    await storage.aclose()
    mount_tmpfs(place, "ro")
    for directory in ("data", "new"):
        refused = a_storage(f"{place}/{directory}")
        with pytest.raises(StorageRefused, match=r"[Rr]ead-only"):
            await refused.check()
        await refused.aclose()
    mount_tmpfs(place, "rw")
    assert await state_of(storage) is JobState.QUEUED
    await storage.aclose()


def test_a_read_only_filesystem_is_refused(tmp_path: Path) -> None:
    """Fault 52."""
    run_apart(use_it_read_only, tmp_path, start=OWN_MOUNTS)


async def use_it_as_somebody_else(place: str) -> None:
    storage = a_storage(f"{place}/data")
    await ContractClient(storage).enqueue(a_job())
    await storage.aclose()
    os.chmod(f"{place}/data", 0o555)  # noqa: S103 (to read, but not to write)
    if os.geteuid() == 0:
        os.chmod(place, 0o755)  # noqa: S103 (nobody is to get as far as the directory itself)
        os.setuid(NOBODY)
    for directory in (f"{place}/data", f"{place}/data/new"):
        refused = a_storage(directory)
        with pytest.raises(StorageRefused, match=r"for this user|Permission denied"):
            await refused.check()
        await refused.aclose()


def test_a_directory_of_somebody_else_is_refused() -> None:
    """Fault 52."""
    # Not tmp_path, whose parents let nobody else in.
    with tempfile.TemporaryDirectory() as place:
        run_apart(use_it_as_somebody_else, place)


async def lose_an_fsync(directory: str) -> None:
    storage = a_storage(directory)
    client = ContractClient(storage)
    await client.enqueue(a_job("before"))
    fail_fsync()
    with pytest.raises(StorageFault, match="the disk failed"):
        await client.enqueue(a_job("lost"))
    # Nothing is tried again: the next fsync may succeed without what this one did not write.
    for _ in range(2):
        with pytest.raises(StorageFault, match="the disk failed"):
            await client.enqueue(a_job("after"))
    with pytest.raises(StorageFault, match="the disk failed"):
        await storage.stats(QUEUE)
    with pytest.raises(StorageFault, match="the disk failed"):
        storage.open_beater(timeout_s=5).beat(QUEUE, "w1")
    os._exit(0)


async def test_a_failed_fsync_stops_the_storage_until_a_new_process(directory: Path) -> None:
    """Fault 52: EIO; no write is answered afterwards, and a fresh start finds all in order."""
    run_apart(lose_an_fsync, directory)
    storage = a_storage(str(directory))
    findings = {finding.topic: finding.level for finding in await storage.diagnose()}
    assert findings["integrity"] == "ok"
    assert await state_of(storage, "before") is JobState.QUEUED
    assert await state_of(storage, "after") is None
    await ContractClient(storage).enqueue(a_job("fresh"))
    await storage.aclose()


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Use up what file descriptors the process may have."""
    taken: list[int] = []
    with suppress(OSError):
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    try:
        yield
    finally:
        for number in taken:
            os.close(number)


async def run_out_of_descriptors(place: str) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    old, new = a_storage(f"{place}/old"), a_storage(f"{place}/new")
    await ContractClient(old).enqueue(a_job())
    with no_descriptors():
        await ContractClient(old, "other").enqueue(a_job("next"))
        for _ in range(3):
            with pytest.raises(StorageUnavailable, match="Too many open files"):
                await new.check()
    await ContractClient(new).enqueue(a_job())
    for storage in (old, new):
        await storage.aclose()
    waiting = asyncio.Event()

    def note(line: logging.LogRecord) -> bool:
        if line.msg.startswith("storage.waiting"):
            waiting.set()
        return True

    logging.getLogger("headrace").addFilter(note)
    async with App(f"file://{place}/app") as app:
        limit = patience(10)
        with no_descriptors():
            used = time.process_time()
            job = asyncio.create_task(app.enqueue("task", queue="q"))
            # Told once it has lasted a second, which is some tries.
            async with asyncio.timeout(limit):
                await waiting.wait()
            assert not job.done()
            assert time.process_time() - used < 0.5
        await job
    assert len(os.listdir("/proc/self/fd")) < 20


def test_a_process_without_file_descriptors_waits_for_some(tmp_path: Path) -> None:
    """Fault 54: a typed error that is tried again without haste; what is open goes on."""
    events = ("storage.waiting", "storage.recovered")
    run_apart(run_out_of_descriptors, tmp_path, events=events)


def address_space() -> int:
    """Return how many bytes of it this process uses."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


async def run_out_of_threads(place: str) -> None:
    storage = a_storage(f"{place}/data")
    room = address_space() + (1 << 20)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (room, limits[1]))
    with pytest.raises(StorageUnavailable, match="start new thread"):
        await storage.check()
    resource.setrlimit(resource.RLIMIT_AS, limits)
    assert await ContractClient(storage).enqueue(a_job()) == ["queued"]
    waiter = storage.open_waiter(QUEUE, "w1", "default")
    resource.setrlimit(resource.RLIMIT_AS, (room, limits[1]))
    with pytest.raises(StorageUnavailable, match="start new thread"):
        await waiter.wait(0.01)
    resource.setrlimit(resource.RLIMIT_AS, limits)
    assert await waiter.wait(1)
    await storage.aclose()


def test_a_process_without_threads_waits_for_some(tmp_path: Path) -> None:
    """Fault 54."""
    run_apart(run_out_of_threads, tmp_path)

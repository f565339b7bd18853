"""The writer: group commit, its errors, and that closing leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import socket
import sqlite3
import threading
from pathlib import Path

import pytest

from headrace.errors import ReplyLost, StaleCall, StorageFault, StorageFull, StorageUnavailable
from headrace.job import JobState
from headrace.storage.sqlite.engine import database
from headrace.storage.sqlite.engine.location import FILE_NAME
from headrace.storage.sqlite.engine.step import Step
from headrace.storage.sqlite.engine.writer import GROUP
from headrace.storage.sqlite.storage import SqliteStorage, wall_clock
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    completed,
    ids,
    state_of,
)
from tests.storage.conftest import SqliteSubject


async def test_a_call_that_fails_leaves_its_neighbours_alone(subject: SqliteSubject) -> None:
    storage = subject.storage
    old, new = ContractClient(storage, "c1"), ContractClient(storage, "c2")
    await old.enqueue(a_job("first"), number=9)
    answers = await asyncio.gather(
        new.enqueue(a_job("before")),
        old.enqueue(a_job("stale"), number=1),
        new.enqueue(a_job("after")),
        return_exceptions=True,
    )
    assert [type(answer) for answer in answers] == [list, StaleCall, list]
    states = [await state_of(storage, name) for name in ("before", "stale", "after")]
    assert states == [JobState.QUEUED, None, JobState.QUEUED]


async def test_more_calls_than_one_transaction_takes_are_all_answered(
    subject: SqliteSubject,
) -> None:
    clients = [ContractClient(subject.storage, f"c{n}") for n in range(3 * GROUP)]
    answers = await asyncio.gather(*(c.enqueue(a_job(f"{n}")) for n, c in enumerate(clients)))
    assert answers == [["queued"]] * len(clients)
    assert (await subject.storage.stats(QUEUE)).queued == len(clients)


async def test_an_error_of_our_own_is_a_fault_and_changes_nothing(
    file_storage: SqliteStorage,
) -> None:
    await ContractClient(file_storage).enqueue(a_job())

    def broken(step: Step) -> None:
        step.db.execute("DELETE FROM jobs")
        raise ZeroDivisionError("broken")

    with pytest.raises(StorageFault, match="broken"):
        await file_storage.engine().writer.run(broken, wall_clock)
    assert await state_of(file_storage) is JobState.QUEUED


async def test_a_caller_that_gives_up_disturbs_nobody(subject: SqliteSubject) -> None:
    tasks = [
        asyncio.create_task(ContractClient(subject.storage, f"c{n}").enqueue(a_job(f"{n}")))
        for n in range(10)
    ]
    await asyncio.sleep(0)
    tasks[3].cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(answer == ["queued"] for answer in answers) == 9
    assert (await subject.storage.stats(QUEUE)).queued == 10


async def test_a_full_disk_takes_no_job_and_keeps_outcomes_waiting(
    file_storage: SqliteStorage,
) -> None:
    client = ContractClient(file_storage)
    worker = await ContractIncarnation(file_storage, "w1").register()
    await client.enqueue(a_job())
    job = await worker.claim_one()
    writer = file_storage.engine().writer

    def limit(step: Step, pages: int = 1) -> None:
        step.db.execute(f"PRAGMA max_page_count = {pages}")

    await writer.run(limit, wall_clock)
    with pytest.raises(StorageFull, match="disk is full"):
        await client.enqueue(*(a_job(f"{n}", b"." * 10_000) for n in range(100)))
    # An outcome that finds no room is no error for good: its worker keeps it and comes again.
    with pytest.raises(StorageUnavailable, match="disk is full"):
        await worker.settle(job, completed(b"." * 500_000))
    await writer.run(lambda step: limit(step, 1_000_000), wall_clock)
    assert await worker.settle(job, completed(b"." * 500_000))
    assert (await file_storage.stats(QUEUE)).enqueued == 1


async def test_another_process_that_writes_is_waited_for(
    directory: Path, file_storage: SqliteStorage
) -> None:
    await file_storage.check()
    other = sqlite3.connect(directory / FILE_NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    answer = asyncio.create_task(ContractClient(file_storage).enqueue(a_job()))
    done, _ = await asyncio.wait([answer], timeout=0.3)
    assert not done
    other.execute("COMMIT")
    other.close()
    assert await answer == ["queued"]


async def test_a_database_that_stays_busy_is_unavailable(
    directory: Path, file_storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.1)
    await file_storage.check()
    other = sqlite3.connect(directory / FILE_NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageUnavailable, match="another process held the database"):
        await ContractClient(file_storage).enqueue(a_job())
    with pytest.raises(ReplyLost):
        file_storage.engine().writer.call(lambda _: None, wall_clock, timeout_s=0.01)
    other.close()


async def test_a_process_that_was_told_while_the_database_was_busy_is_not_deaf_afterwards(
    directory: Path,
    file_storage: SqliteStorage,
    elsewhere: SqliteStorage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.05)
    waiter = file_storage.open_waiter(QUEUE, "w1", "default")
    assert not await waiter.wait(0.01)
    other = sqlite3.connect(directory / FILE_NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    [own] = (directory / "wake").iterdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"!", f"{own}")
    # The look that this asks for finds the database held, before this call does.
    with pytest.raises(StorageUnavailable):
        await file_storage.check()
    with pytest.raises(StorageUnavailable):
        await file_storage.check()
    other.close()
    await ContractClient(elsewhere).enqueue(a_job())
    assert await waiter.wait(2)


def open_files() -> set[str]:
    links = [Path("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    return {f"{link.name} {os.readlink(link)}" for link in links if link.is_symlink()}


async def test_closing_leaves_no_thread_no_socket_and_no_file(
    directory: Path, file_storage: SqliteStorage
) -> None:
    threads, files = set(threading.enumerate()), open_files()
    for _ in range(2):
        await ContractClient(file_storage).enqueue(a_job())
        waiter = file_storage.open_waiter(QUEUE, "w1", "default")
        await waiter.wait(0.01)
        await waiter.aclose()
        channel = file_storage.open_channel()
        assert await channel.receive() is None
        await channel.aclose()
        beater = file_storage.open_beater(timeout_s=5)
        assert beater.beat(QUEUE, "w1").is_gone
        assert len(list((directory / "wake").iterdir())) == 1
        beater.close()
        await file_storage.aclose()
        assert set(threading.enumerate()) <= threads  # those of earlier tests may end meanwhile
        assert open_files() == files
        assert list((directory / "wake").iterdir()) == []


async def test_what_is_in_memory_outlives_its_storages_and_is_shared_by_name() -> None:
    url = "memory://shared-by-name"
    first = SqliteStorage(url).for_tenant("acme")
    await ContractClient(first).enqueue(a_job())
    await first.aclose()
    second, third = SqliteStorage(url).for_tenant("acme"), SqliteStorage(url).for_tenant("acme")
    other_name = SqliteStorage(url + "-not").for_tenant("acme")
    other_tenant = SqliteStorage(url).for_tenant("other")
    worker = await ContractIncarnation(second, "w1").register()
    assert ids(await worker.claim()) == ["x"]
    assert await state_of(third) is JobState.ACTIVE
    assert await state_of(other_name) is None
    assert await state_of(other_tenant) is None
    assert await other_tenant.queues() == []
    tenant_of_second = second.for_tenant("other")
    assert tenant_of_second.engine() is second.engine()
    for storage in (second, third, other_name, other_tenant, tenant_of_second):
        await storage.aclose()


async def test_a_clock_that_is_set_back_makes_no_negative_times(subject: SqliteSubject) -> None:
    client, worker = ContractClient(subject.storage), ContractIncarnation(subject.storage, "w1")
    await worker.register()
    await client.enqueue(a_job(), a_job("later", delay_ms=1000))
    await subject.advance(-60_000)
    stats = await subject.storage.stats(QUEUE)
    assert (stats.oldest_ms, stats.workers) == (0, 1)
    assert (await subject.storage.workers(QUEUE))[0].silent_ms == 0
    job = await worker.claim_one()
    assert job.waited_ms == 0
    assert await worker.settle(job, completed())
    # Delays follow the clock, as on a server.
    await subject.advance(61_000)
    assert ids(await worker.claim()) == ["later"]

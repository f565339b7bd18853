"""Several processes on one directory: they wake each other, and one's death is the others' work."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import anyio
import pytest

from headrace.job import JobState
from headrace.storage.sqlite.engine.location import FILE_NAME
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    completed,
    ids,
)
from tests.apps.embedded_app import QUEUE as SHARED
from tests.apps.embedded_app import make_app
from tests.support.processes import WorkerProcess
from tests.support.until import patience, until

MODULE = "tests.apps.embedded_app"


def sockets(directory: Path) -> list[Path]:
    return list(directory.glob("wake/*"))


async def test_a_waiter_hears_of_an_enqueue_elsewhere(
    file_storage: SqliteStorage, elsewhere: SqliteStorage
) -> None:
    worker = await ContractIncarnation(file_storage, "w1").register()
    waiter = file_storage.open_waiter(QUEUE, worker.name, "default")
    assert not await waiter.wait(0.01)
    woken: list[float] = []

    async def wait() -> None:
        while not await waiter.wait(2):
            pass
        woken.append(time.monotonic())

    with anyio.fail_after(patience(10)):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await ContractClient(elsewhere).enqueue(a_job())
            enqueued_at = time.monotonic()
    # By an event: a poll of the two seconds' block would come late.
    assert woken[0] - enqueued_at < 1
    assert ids(await worker.claim()) == ["x"]


async def test_a_token_left_before_the_wait_is_not_lost(
    file_storage: SqliteStorage, elsewhere: SqliteStorage
) -> None:
    waiter = file_storage.open_waiter(QUEUE, "w1", "default")
    assert not await waiter.wait(0.01)
    await ContractClient(elsewhere).enqueue(a_job())
    assert await waiter.wait(2)


async def test_an_end_is_told_to_the_process_that_waits(
    file_storage: SqliteStorage, elsewhere: SqliteStorage
) -> None:
    channel = file_storage.open_channel()
    assert await channel.receive() is None
    await ContractClient(file_storage).enqueue(a_job(channel=channel.name))
    worker = await ContractIncarnation(elsewhere, "w1").register()
    await worker.settle(await worker.claim_one(), completed(b"\x00\xff"))
    with anyio.fail_after(patience(5)):
        end = await channel.receive()
    assert end is not None
    assert (end.id, end.state, end.result) == ("x", JobState.COMPLETED, b"\x00\xff")
    await channel.aclose()


async def test_words_to_a_process_that_is_gone_are_pruned(
    file_storage: SqliteStorage, directory: Path
) -> None:
    now = 1_000_000
    storage = SqliteStorage(f"file://{directory}", clock=lambda: now).for_tenant("acme")
    await ContractClient(storage).enqueue(a_job(channel="gone.1"))
    worker = await ContractIncarnation(storage, "w1").register()
    await worker.settle(await worker.claim_one(), completed())
    now += 60_000
    assert await storage.prune(QUEUE) == ""
    await storage.aclose()
    with sqlite3.connect(directory / FILE_NAME) as connection:
        assert connection.execute("SELECT count(*) FROM messages").fetchone() == (0,)
    connection.close()


async def test_the_socket_of_a_dead_process_is_removed(
    file_storage: SqliteStorage, directory: Path, tmp_path: Path
) -> None:
    url = f"file://{directory}"
    with WorkerProcess.module(MODULE, url, "worker", directory=tmp_path) as worker:
        await until(lambda: sockets(directory), within=20)
        worker.kill()
        await worker.wait()
    assert len(sockets(directory)) == 1
    await ContractClient(file_storage).enqueue(a_job())
    assert sockets(directory) == []


async def test_a_killed_workers_job_runs_in_another_process(
    directory: Path, tmp_path: Path
) -> None:
    url = f"file://{directory}"
    async with make_app(url) as app:
        handle = await app.tasks["hold"].enqueue()

        async def starts() -> int:
            return (await handle.status()).starts

        async def has_moved() -> bool:
            return await starts() == 2

        with WorkerProcess.module(MODULE, url, "worker", directory=tmp_path) as first:
            await until(starts, within=20)
            first.kill()
            with WorkerProcess.module(MODULE, url, "worker", directory=tmp_path, name="second"):
                await until(has_moved, within=20)
    assert (await handle.status()).stalls == 1
    await app.aclose()


async def test_a_result_comes_from_another_process(directory: Path, tmp_path: Path) -> None:
    url = f"file://{directory}"
    with WorkerProcess.module(MODULE, url, "worker", directory=tmp_path) as worker:
        async with make_app(url) as app:
            assert await app.tasks["pid"].enqueue_and_wait() == worker.pid


@pytest.mark.parametrize("kill", range(3))
async def test_what_a_killed_producer_was_told_is_stored(
    directory: Path, tmp_path: Path, kill: int
) -> None:
    url = f"file://{directory}"
    with WorkerProcess.module(MODULE, url, "producer", directory=tmp_path) as producer:
        await until(lambda: producer.stdout.count("\n") > 200 * (kill + 1), within=20)
        producer.kill()
        await producer.wait()
        told = producer.stdout.rpartition("\n")[0].split("\n")
    storage = SqliteStorage(url).for_tenant("default")
    findings = {finding.topic: finding.level for finding in await storage.diagnose()}
    assert findings["integrity"] == "ok"
    stored = (await storage.stats(SHARED)).queued
    assert len(told) <= stored <= len(told) + 40
    for job_id in told[-20:]:
        assert await storage.get(SHARED, job_id) is not None
    await storage.aclose()

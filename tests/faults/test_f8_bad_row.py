"""F8: a row that can't be read holds up nobody else's jobs on file://."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from headrace.job import ClaimedJob, JobState
from headrace.storage.sqlite.engine.location import FILE_NAME
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.testing.contract.schedule_steps import a_schedule, names, take, write
from headrace.testing.contract.steps import (
    MINUTE_MS,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    completed,
    failed,
    record_of,
    started,
    state_of,
)

BAD = "CAST(x'ff' AS TEXT)"


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[SqliteStorage]:
    storage = SqliteStorage(f"file://{tmp_path}/data").for_tenant("acme")
    yield storage
    await storage.aclose()


def spoil(tmp_path: Path, sql: str) -> None:
    """Change a row as no release of ours would."""
    db = sqlite3.connect(tmp_path / "data" / FILE_NAME)
    with db:
        assert db.execute(sql).rowcount == 1
    db.close()


@pytest.mark.parametrize("column", ["id", "task", "nonce", "channels", "reason", "error"])
@pytest.mark.parametrize("options", [{}, {"delay_ms": 1}], ids=["ready", "due"])
async def test_text_that_is_none_holds_nobody_up(
    storage: SqliteStorage, tmp_path: Path, column: str, options: dict[str, Any]
) -> None:
    client, worker = ContractClient(storage), await ContractIncarnation(storage, "w1").register()
    await client.enqueue(a_job("x", **options), a_job("y", **options))
    spoil(tmp_path, f"UPDATE jobs SET {column} = {BAD} WHERE id = 'x'")  # noqa: S608
    jobs: list[ClaimedJob] = []
    while len(jobs) < 2:
        jobs += await worker.claim()
    assert [await worker.settle(job, completed()) for job in jobs] == [True, True]
    assert await state_of(storage, "y") is JobState.COMPLETED
    assert len((await storage.list_jobs(QUEUE, JobState.COMPLETED)).rows) == 2


async def test_a_job_whose_payload_is_gone_is_claimed_without_one(
    storage: SqliteStorage, tmp_path: Path
) -> None:
    client, worker = ContractClient(storage), await ContractIncarnation(storage, "w1").register()
    await client.enqueue(a_job("x"), a_job("y"))
    spoil(tmp_path, "UPDATE jobs SET payload = NULL WHERE id = 'x'")
    assert [(job.id, job.payload) for job in await worker.claim()] == [("x", b""), ("y", b"[]")]


async def test_an_error_that_can_not_be_read_is_shown_as_one(
    storage: SqliteStorage, tmp_path: Path
) -> None:
    client, worker = ContractClient(storage), await ContractIncarnation(storage, "w1").register()
    await worker.settle(await started(client, worker), failed())
    spoil(tmp_path, "UPDATE errors SET body = x'ff'")
    assert [error.type for error in (await record_of(storage)).errors] == ["DamagedError"]


async def test_what_a_worker_said_of_itself_may_be_rubbish(
    storage: SqliteStorage, tmp_path: Path
) -> None:
    await ContractIncarnation(storage, "w1").register()
    spoil(tmp_path, "UPDATE incarnations SET info = x'ff'")
    assert [worker.incarnation for worker in await storage.workers(QUEUE)] == ["w1"]


@pytest.mark.parametrize("column", ["id", "app"])
async def test_a_schedule_whose_text_is_none_holds_no_other_up(
    storage: SqliteStorage, tmp_path: Path, column: str
) -> None:
    await write(storage, a_schedule("x", app="shop"), a_schedule("y", app="shop"))
    spoil(tmp_path, f"UPDATE schedules SET {column} = {BAD} WHERE id = 'x'")  # noqa: S608
    assert len(names((await take(storage)).schedules)) == 2
    listed = (await storage.list_schedules()).schedules
    assert await write(storage, *(a_schedule(each.id, expected=1) for each in listed)) == [2, 2]


async def test_a_channel_and_a_release_whose_text_is_none_hold_nobody_up(
    storage: SqliteStorage, tmp_path: Path
) -> None:
    await take(storage, channel="elsewhere.1")
    await storage.join_release("shop", "v1", alive_ms=MINUTE_MS)
    for table, column in {"schedule_listeners": "channel", "schedule_releases": "digest"}.items():
        spoil(tmp_path, f"UPDATE {table} SET {column} = {BAD}")  # noqa: S608
    assert await write(storage, a_schedule(), wakes=True) == [1]
    standing = await storage.join_release("shop", "v2", alive_ms=MINUTE_MS)
    assert (standing.is_newest, len(standing.alive)) == (True, 2)

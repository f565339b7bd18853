"""What becomes of successors in an embedded database of which rows were lost behind our back."""

from __future__ import annotations

import pytest

from headrace.job import ClaimedJob, JobState
from headrace.storage.base import Storage
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    completed,
    record_of,
)
from headrace.testing.contract.updates import an_update
from tests.storage.conftest import SqliteSubject

BIG = b"." * 1_000


async def block(client: ContractClient, worker: ContractIncarnation) -> ClaimedJob:
    """Have `x` be active, and its next one blocked; return the active one."""
    await client.enqueue(a_job())
    job = await worker.claim_one()
    await client.enqueue(an_update(payload=BIG))
    return job


def lose(subject: SqliteSubject, sql: str) -> None:
    """Change the database as a stranger does."""
    subject._call(lambda step: step.db.execute(sql))  # noqa: SLF001


async def repaired(storage: Storage) -> int:
    """Repair, and return how much was put right."""
    done = await storage.repair(QUEUE, is_full=True)
    assert done.cursor == ""
    return done.mended


async def test_the_successor_of_a_lost_row_enters_by_the_repair(
    subject: SqliteSubject, storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await block(client, worker)
    lose(subject, "DELETE FROM jobs WHERE is_next = 0")
    assert await repaired(storage) > 0
    record = await record_of(storage)
    assert (record.state, record.payload) == (JobState.QUEUED, BIG)
    assert await subject.problems() == []
    assert await repaired(storage) == 0


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.ACTIVE, JobState.FAILED])
async def test_a_successor_is_that_of_the_job_that_came_in_place_of_a_lost_one(
    subject: SqliteSubject,
    storage: Storage,
    client: ContractClient,
    worker: ContractIncarnation,
    state: JobState,
) -> None:
    await block(client, worker)
    lose(subject, "DELETE FROM jobs WHERE is_next = 0")
    job = await bring(state, client, worker)
    assert await repaired(storage) > 0
    assert await subject.problems() == []
    if state is JobState.ACTIVE and job is not None:
        assert (await record_of(storage)).has_next
        await worker.settle(job, completed())
    record = await record_of(storage)
    assert (record.state, record.payload) == (JobState.QUEUED, BIG)
    assert await repaired(storage) == 0

"""What a page of a listing costs: one piece of an index, however deep it is."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest

from headrace.errors import InvalidOption
from headrace.job import JobState
from headrace.storage.sqlite.engine.step import Step
from headrace.storage.sqlite.storage import SqliteStorage, wall_clock
from headrace.storage.sqlite.verbs import listing
from headrace.storage.values import Settlement
from headrace.testing.contract.steps import (
    MINUTE_MS,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    completed,
    retried,
)

MANY = 3_000
BATCH = 500


@pytest.fixture
async def storage() -> AsyncIterator[SqliteStorage]:
    """Return a storage in memory."""
    storage = SqliteStorage(f"memory://test-{secrets.token_hex(6)}").for_tenant("acme")
    yield storage
    await storage.aclose()


def page_cost(storage: SqliteStorage, state: JobState, cursor: str) -> int:
    """Return how many of the database's own steps, in tens, a page takes."""
    after = listing.read_cursor(state, cursor)
    tens = 0

    def count() -> int:
        nonlocal tens
        tens += 1
        return 0

    def look(step: Step) -> None:
        step.db.set_progress_handler(count, 10)
        try:
            listing.list_jobs(step, ("acme", QUEUE), state, after, 50)
        finally:
            step.db.set_progress_handler(None, 0)

    storage.engine().writer.call(look, wall_clock, timeout_s=10)
    return tens


async def fill(state: JobState, client: ContractClient, worker: ContractIncarnation) -> None:
    """Bring many jobs to a state."""
    delay_ms = MINUTE_MS if state is JobState.SCHEDULED else 0
    for first in range(0, MANY, BATCH):
        await client.enqueue(
            *(a_job(f"{n}", delay_ms=delay_ms) for n in range(first, first + BATCH))
        )
        if state in (JobState.QUEUED, JobState.SCHEDULED):
            continue
        claimed = await worker.claim(BATCH)
        if state is not JobState.ACTIVE:
            outcome = completed() if state is JobState.COMPLETED else retried()
            await worker.settle_all(*(Settlement(job.id, job.claim, 1, outcome) for job in claimed))


@pytest.mark.parametrize(
    "state",
    [
        JobState.QUEUED,
        JobState.SCHEDULED,
        JobState.RETRYING,
        JobState.ACTIVE,
        JobState.COMPLETED,
    ],
)
async def test_the_last_page_costs_no_more_than_the_first(
    storage: SqliteStorage, client: ContractClient, worker: ContractIncarnation, state: JobState
) -> None:
    await fill(state, client, worker)
    cursor = ""
    for _ in range(MANY // BATCH - 1):
        cursor = (await storage.list_jobs(QUEUE, state, cursor=cursor, limit=BATCH)).cursor
    first = page_cost(storage, state, "")
    last = page_cost(storage, state, cursor)
    assert 0 < last < 2 * first


async def test_a_page_costs_the_same_with_more_jobs_in_other_lanes(
    storage: SqliteStorage, client: ContractClient
) -> None:
    await client.enqueue(*(a_job(f"{n}", lane="process") for n in range(60)))
    alone = page_cost(storage, JobState.QUEUED, "")
    for first in range(0, MANY, BATCH):
        names = range(first, first + BATCH)
        await client.enqueue(*(a_job(f"a{n}", lane="a") for n in names))
        await client.enqueue(*(a_job(f"z{n}", lane="z") for n in names))
    cursor = '["a",0,0]'
    assert 0 < page_cost(storage, JobState.QUEUED, cursor) < 2 * alone
    assert 0 < page_cost(storage, JobState.QUEUED, "") < 2 * alone


async def test_a_page_passes_over_a_bounded_number_of_other_jobs(
    storage: SqliteStorage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await fill(JobState.SCHEDULED, client, worker)
    await bring(JobState.RETRYING, client, worker, "r")
    page = await storage.list_jobs(QUEUE, JobState.RETRYING)
    assert page.rows == []
    assert page.cursor
    found = []
    while page.cursor:
        page = await storage.list_jobs(QUEUE, JobState.RETRYING, cursor=page.cursor)
        found += [row.id for row in page.rows]
    assert found == ["r"]


async def test_records_whose_time_is_over_are_not_listed_and_hold_nothing_up() -> None:
    now = wall_clock()
    storage = SqliteStorage(f"memory://test-{secrets.token_hex(6)}", clock=lambda: now).for_tenant(
        "acme"
    )
    client, worker = ContractClient(storage), await ContractIncarnation(storage, "w1").register()
    for n in range(5):
        await client.enqueue(a_job(f"{n}"))
        keep_ms = 1_000 if n % 2 else MINUTE_MS
        await worker.settle(await worker.claim_one(), completed(keep_ms=keep_ms))
    now += 1_000
    page = await storage.list_jobs(QUEUE, JobState.COMPLETED, limit=2)
    assert [row.id for row in page.rows] == ["4", "2"]
    page = await storage.list_jobs(QUEUE, JobState.COMPLETED, cursor=page.cursor, limit=2)
    assert [row.id for row in page.rows] == ["0"]
    await storage.aclose()


async def test_a_refused_cursor_opens_nothing() -> None:
    name = f"test-{secrets.token_hex(6)}"
    storage = SqliteStorage(f"file:///nowhere/{name}").for_tenant("acme")
    with pytest.raises(InvalidOption, match="cursor='x' is not one of a page of failed jobs"):
        await storage.list_jobs(QUEUE, JobState.FAILED, cursor="x")

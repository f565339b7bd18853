"""What a page of an export costs: one piece of an index, however deep it is."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator

import pytest

from headrace.job import JobState
from headrace.storage.sqlite.engine.step import Step
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.storage.sqlite.verbs import reading
from headrace.testing.contract.export import end
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    cancelled,
    failed,
)

MANY, BATCH = 3_000, 100


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now_ms = time.time_ns() // 1_000_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    """Return the storage's clock."""
    return Clock()


@pytest.fixture
async def storage(clock: Clock) -> AsyncIterator[SqliteStorage]:
    """Return a storage in memory with many dead letters, 100 of each millisecond."""
    url = f"memory://test-{secrets.token_hex(6)}"
    storage = SqliteStorage(url, clock=clock).for_tenant("acme")
    client = ContractClient(storage)
    worker = await ContractIncarnation(storage, "w1").register()
    for first in range(0, MANY, BATCH):
        await end(client, worker, [f"{first + n:06}" for n in range(BATCH)], failed())
        clock.now_ms += 1
    await end(client, worker, [f"c{n}" for n in range(BATCH)], cancelled())
    clock.now_ms += 1
    yield storage
    await storage.aclose()


def page_cost(storage: SqliteStorage, clock: Clock, behind: str) -> int:
    """Return how many of the database's own steps, in tens, a page takes."""
    cursor = f"failed:{QUEUE}:{behind}" if behind else ""
    after = reading.read_cursor(QUEUE, JobState.FAILED, cursor)
    tens = 0

    def count() -> int:
        nonlocal tens
        tens += 1
        return 0

    def look(step: Step) -> None:
        step.db.set_progress_handler(count, 10)
        try:
            page = reading.export(step, ("acme", QUEUE), JobState.FAILED, after, 50)
        finally:
            step.db.set_progress_handler(None, 0)
        assert len(page.records) == 50

    storage.engine().writer.call(look, clock, timeout_s=10)
    return tens


async def test_every_page_costs_the_same(storage: SqliteStorage, clock: Clock) -> None:
    page = await storage.export(QUEUE, JobState.FAILED, limit=1)
    began = page.records[0].changed_ms
    first = page_cost(storage, clock, "")
    assert first > 0
    for piece in (1, 15, 28):
        behind = f"{began + piece}:{piece * BATCH + 10:06}"
        assert page_cost(storage, clock, behind) < 2 * first

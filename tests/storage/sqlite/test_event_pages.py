"""Bulk reads of events look at few rows, and bear what strangers and older releases left."""

from __future__ import annotations

import re
import secrets
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import pytest

from headrace.storage import EventLines, EventPlace, EventSpan
from headrace.storage.sqlite.storage import SqliteStorage, wall_clock
from headrace.testing.contract.steps import QUEUE, ContractClient, a_job

T = TypeVar("T")
Verb = Callable[[SqliteStorage], Awaitable[object]]

ENTRIES = 50_000
FILL = """
INSERT INTO events (key, at_ms, lines, n)
WITH RECURSIVE numbers (entry) AS (SELECT 2 UNION ALL SELECT entry + 1 FROM numbers LIMIT :count)
SELECT (SELECT key << 40 FROM queues) + entry, 1000 + entry, 'a' || char(10) || 'b', 2 * entry
FROM numbers
"""
LEAVE_HOLES = """
DELETE FROM events WHERE at_ms <= 1010 OR at_ms BETWEEN 25000 AND 26999 OR at_ms >= 50000
"""
VERBS: dict[str, Verb] = {
    "first page": lambda storage: storage.event_lines(QUEUE, limit=10),
    "page in the middle": lambda storage: storage.event_lines(
        QUEUE, after="0-300", until="0-305", limit=10
    ),
    "page behind all": lambda storage: storage.event_lines(QUEUE, after="0-999999"),
    "span": lambda storage: storage.event_span(QUEUE),
    "place before all": lambda storage: storage.event_place(QUEUE, 1),
    "place in the middle": lambda storage: storage.event_place(QUEUE, 1300),
    "place of the last": lambda storage: storage.event_place(QUEUE, 2**60),
}


async def filled(count: int) -> SqliteStorage:
    """Return a storage with so many entries of two events, each of its own millisecond."""
    storage = SqliteStorage(f"memory://test-{secrets.token_hex(6)}", clock=lambda: 1001)
    storage = storage.for_tenant("acme")
    await ContractClient(storage).enqueue(a_job("a"), a_job("b"))
    await look(storage, lambda db: db.execute(FILL, {"count": count - 1}))
    await look(storage, lambda db: db.execute("UPDATE queues SET event = ?", (count,)))
    return storage


@pytest.fixture
async def storage() -> AsyncIterator[SqliteStorage]:
    """Return one with many."""
    storage = await filled(ENTRIES)
    yield storage
    await storage.aclose()


async def look(storage: SqliteStorage, work: Callable[[sqlite3.Connection], T]) -> T:
    """Do something with the database, in its thread."""
    return await storage.engine().writer.run(lambda step: work(step.db), wall_clock)


def place(entry: int) -> EventPlace:
    """Return that of one of many entries."""
    return EventPlace(f"{1000 + entry}-{entry}", 2 * entry - 1, 2 * entry)


async def test_places_are_found_among_many(storage: SqliteStorage) -> None:
    assert await storage.event_span(QUEUE) == EventSpan(place(1), place(ENTRIES))
    assert await storage.event_place(QUEUE, 1000) is None
    for entry in (1, 2, 3, ENTRIES // 2, ENTRIES - 1, ENTRIES):
        assert await storage.event_place(QUEUE, 1000 + entry) == place(entry)
    assert await storage.event_lines(QUEUE, after="0-25000", until="0-25002") == [
        EventLines("26001-25001", 50_002, b"a\nb"),
        EventLines("26002-25002", 50_004, b"a\nb"),
    ]


async def cost(storage: SqliteStorage, verb: Verb) -> int:
    """Return how many of the database's own steps a verb takes."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    await look(storage, lambda db: db.set_progress_handler(count, 1))
    await verb(storage)
    await look(storage, lambda db: db.set_progress_handler(None, 0))
    return steps


async def test_a_look_costs_little_more_with_many_entries(storage: SqliteStorage) -> None:
    few = await filled(ENTRIES // 50)
    costs = {
        name: (await cost(few, verb), await cost(storage, verb)) for name, verb in VERBS.items()
    }
    await few.aclose()
    # A place among 50 times as many takes 6 more probes, of 10 before.
    assert {name: pair for name, pair in costs.items() if pair[1] > 2 * pair[0]} == {}
    assert min(pair[0] for pair in costs.values()) > 0
    assert max(pair[1] for pair in costs.values()) < 1_000


async def test_every_statement_finds_its_rows_by_an_index(storage: SqliteStorage) -> None:
    statements: set[str] = set()
    await look(storage, lambda db: db.set_trace_callback(statements.add))
    for verb in VERBS.values():
        await verb(storage)
    await look(storage, lambda db: db.set_trace_callback(None))

    def plans(db: sqlite3.Connection) -> list[str]:
        asked = [sql for sql in statements if "FROM events" in sql]
        assert len(asked) > 20
        return [row[3] for sql in asked for row in db.execute(f"EXPLAIN QUERY PLAN {sql}")]

    found = set(await look(storage, plans))
    assert {re.sub(r" \(.*", "", step) for step in found} == {
        "SEARCH events USING INTEGER PRIMARY KEY"
    }


async def test_an_entry_of_an_older_release_has_no_number(storage: SqliteStorage) -> None:
    await look(storage, lambda db: db.execute("UPDATE events SET n = 0 WHERE at_ms <= 1003"))
    first = EventPlace("1001-1", 0, 0)
    assert await storage.event_span(QUEUE) == EventSpan(first, place(ENTRIES))
    assert await storage.event_place(QUEUE, 1001) == first
    assert [e.last for e in await storage.event_lines(QUEUE, limit=5)] == [0, 0, 0, 8, 10]


async def test_rows_that_a_stranger_took_away_are_no_hindrance(storage: SqliteStorage) -> None:
    await look(storage, lambda db: db.execute(LEAVE_HOLES))
    assert await storage.event_span(QUEUE) == EventSpan(place(11), place(48_999))
    expected = {1010: None, 1011: place(11), 24_999: place(23_999), 25_000: place(23_999)}
    expected |= {26_999: place(23_999), 27_000: place(26_000), 60_000: place(48_999)}
    assert {ms: await storage.event_place(QUEUE, ms) for ms in expected} == expected


async def test_a_queue_shows_nothing_of_its_neighbours(storage: SqliteStorage) -> None:
    for queue in ("fax", "post"):
        await storage.pause(queue)
        assert await storage.event_span(queue) == EventSpan(None, None)
        assert await storage.event_lines(queue) == []
        assert await storage.event_place(queue, 2**60) is None

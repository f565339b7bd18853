"""Schedules in the embedded database: what they cost, what is cleaned up, who hears of them."""

from __future__ import annotations

import re
import secrets
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar, cast

import anyio
import pytest

from headrace.storage.limits import (
    FIRED_TTL_MS,
    PRUNED_A_CALL,
    RELEASES_TTL_MS,
    SCHEDULES_HEARD_MS,
    SCHEDULES_LIMIT,
)
from headrace.storage.sqlite.storage import SqliteStorage, wall_clock
from headrace.storage.values import End
from headrace.testing.contract.schedule_steps import (
    a_schedule,
    an_occurrence,
    deletion,
    fire,
    take,
    write,
)
from headrace.testing.contract.watch import open_channel
from tests.storage.conftest import SqliteSubject
from tests.support.until import patience

T = TypeVar("T")
Verb = Callable[[SqliteStorage], Awaitable[object]]

FILL = """
INSERT INTO schedules (tenant, id, app, version, due_ms, look_ms, body)
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)
SELECT 'acme', printf('%06d', n), iif(n > :count - 30, 'shop', ''), 1, n, n, zeroblob(300)
FROM numbers
"""
IS_SCAN = re.compile(r"SCAN (?!json_each)")
VERBS: dict[str, Verb] = {
    "read": lambda storage: storage.read_schedules([f"{n:06}" for n in range(20)]),
    "list": lambda storage: storage.list_schedules(limit=20),
    "list from the middle": lambda storage: storage.list_schedules(cursor="000700", limit=20),
    "list an app's": lambda storage: storage.list_schedules(app="shop", limit=20),
    "history": lambda storage: storage.schedule_history("000002"),
    "change": lambda storage: write(
        storage, a_schedule("000003", expected=1, history=(b"",) * 3), wakes=True
    ),
    "delete": lambda storage: write(storage, deletion("000004")),
    "take": lambda storage: take(storage, limit=20, channel="elsewhere.1"),
    "fire": lambda storage: fire(storage, *(an_occurrence(1, f"{n:06}") for n in range(20))),
    "join": lambda storage: storage.join_release("shop", "v1", alive_ms=15_000),
    "leave": lambda storage: storage.leave_release("shop", "v1"),
}


@pytest.fixture
async def storage() -> AsyncIterator[SqliteStorage]:
    """Return a storage in memory."""
    storage = SqliteStorage(f"memory://test-{secrets.token_hex(6)}").for_tenant("acme")
    yield storage
    await storage.aclose()


async def look(storage: SqliteStorage, work: Callable[[sqlite3.Connection], T]) -> T:
    """Do something with the database, in its thread."""
    return await storage.engine().writer.run(lambda step: work(step.db), wall_clock)


async def fill(storage: SqliteStorage, count: int) -> None:
    """Store many schedules, all of which are due."""
    assert await look(storage, lambda db: db.execute(FILL, {"count": count}).rowcount) == count


async def cost(storage: SqliteStorage, verb: Verb) -> int:
    """Return how many of the database's own steps, in tens, a verb takes."""
    tens = 0

    def count() -> int:
        nonlocal tens
        tens += 1
        return 0

    await look(storage, lambda db: db.set_progress_handler(count, 10))
    await verb(storage)
    await look(storage, lambda db: db.set_progress_handler(None, 0))
    return tens


async def test_verbs_cost_no_more_with_as_many_schedules_as_there_may_be(
    storage: SqliteStorage,
) -> None:
    few = SqliteStorage(f"memory://test-{secrets.token_hex(6)}").for_tenant("acme")
    await fill(few, 1_000)
    await fill(storage, SCHEDULES_LIMIT)
    costs = {
        name: (await cost(few, verb), await cost(storage, verb)) for name, verb in VERBS.items()
    }
    assert {name: pair for name, pair in costs.items() if pair[1] > 1.5 * pair[0]} == {}
    assert min(costs.values()) > (0, 0)
    await few.aclose()


async def test_every_statement_finds_its_rows_by_an_index(storage: SqliteStorage) -> None:
    await fill(storage, 10)
    statements: set[str] = set()
    await look(storage, lambda db: db.set_trace_callback(statements.add))
    await write(storage, a_schedule("new"))
    for verb in VERBS.values():
        await verb(storage)
    await look(storage, lambda db: db.set_trace_callback(None))

    def scans(db: sqlite3.Connection) -> list[str]:
        asked = [sql for sql in statements if sql.lstrip().startswith(("SEL", "UPD", "DEL", "INS"))]
        assert len(asked) > 20
        plans = [(sql, row[3]) for sql in asked for row in db.execute(f"EXPLAIN QUERY PLAN {sql}")]
        return [f"{step}: {sql}" for sql, step in plans if IS_SCAN.match(step)]

    assert await look(storage, scans) == []


async def leave_mark(storage: SqliteStorage, n: int) -> None:
    """Fire an occurrence of a schedule of its own."""
    assert await fire(storage, an_occurrence(n, f"{n}")) == ["queued"]


async def leave_channel(storage: SqliteStorage, n: int) -> None:
    """Name a channel that nobody has any more."""
    await take(storage, channel=f"gone.{n}")


async def leave_release(storage: SqliteStorage, n: int) -> None:
    """Let a release run."""
    await storage.join_release("shop", f"v{n}", alive_ms=1)


async def look_for_work(storage: SqliteStorage) -> None:
    """Look as a scheduler does that has nothing to do."""
    await take(storage)


async def start_anew(storage: SqliteStorage) -> None:
    """Let a release of another app run."""
    await storage.for_tenant("neighbour").join_release("other", "v1", alive_ms=1)


@pytest.mark.parametrize(
    ("table", "leave", "ttl_ms", "clean"),
    [
        ("fired", leave_mark, FIRED_TTL_MS, look_for_work),
        ("schedule_listeners", leave_channel, SCHEDULES_HEARD_MS + 1, look_for_work),
        ("schedule_releases", leave_release, RELEASES_TTL_MS, start_anew),
    ],
    ids=["fired", "listeners", "releases"],
)
async def test_what_is_over_is_deleted_a_piece_at_a_time(
    subject: SqliteSubject,
    table: str,
    leave: Callable[[SqliteStorage, int], Awaitable[None]],
    ttl_ms: int,
    clean: Verb,
) -> None:
    storage = cast(SqliteStorage, subject.storage)
    for n in range(PRUNED_A_CALL + 10):
        await leave(storage, n)

    async def left() -> int:
        sql = f"SELECT count(*) FROM {table} WHERE {table}.key <= ?"  # noqa: S608
        most = PRUNED_A_CALL + 10
        return int((await look(storage, lambda db: db.execute(sql, (most,)).fetchone()))[0])

    await subject.advance(ttl_ms - 1)
    await clean(storage)
    assert await left() == PRUNED_A_CALL + 10
    await subject.advance(1)
    await clean(storage)
    assert await left() == 10
    await clean(storage)
    assert await left() == 0


async def test_another_process_hears_what_comes_sooner(
    file_storage: SqliteStorage, elsewhere: SqliteStorage
) -> None:
    async with open_channel(file_storage) as channel:
        await take(file_storage, channel=channel.name)
        await write(elsewhere, a_schedule(), wakes=True)
        with anyio.fail_after(patience(5)):
            assert await channel.receive() == End("", "", None)
    assert [each.id for each in (await take(file_storage)).schedules] == ["s"]

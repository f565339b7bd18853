"""An older database is brought to this release's schema, in one piece or not at all."""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import StorageRefused
from headrace.job import EnqueueOutcome
from headrace.storage.sqlite.engine import database
from headrace.storage.sqlite.engine.location import place_of
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.storage.values import CallId
from headrace.testing.contract.steps import a_job
from tests.support import sqlite_check
from tests.support.processes import WorkerProcess

FIRST = """-- A list of words; with a comment.
CREATE TABLE words (word TEXT NOT NULL) STRICT;
INSERT INTO words VALUES ('one; two');
"""
SECOND = """
ALTER TABLE words ADD COLUMN length INTEGER;
SELECT halt();
UPDATE words SET length = length(word);
"""
KILLED = f"""
import os, sqlite3, sys
from headrace.storage.sqlite.engine.database import migrate
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.create_function("halt", 0, lambda: os.kill(os.getpid(), 9))
migrate(connection, "x", [{FIRST!r}, {SECOND!r}])
"""

NOW_MS = 2_000
OLD_ROWS = """
INSERT INTO queues (key, tenant, name, is_listed, events, queued, retrying, active, finished, dead,
  tail, event)
  VALUES (1, 'acme', 'mail', 1, 77, 1, 1, 1, 1, 1, 1, 1);
INSERT INTO workers (key, queue, incarnation, info, lease_ms, since, at, claim)
  VALUES (1, 1, 'w1', x'ff', 1000, 15, 16, 3);
INSERT INTO jobs (key, queue, id, state, task, tier, lane, created, at, seq, expires, max_stalls,
  keep, options) VALUES (1, 1, 'w', 'queued', 't', 5, 'default', 10, 10, 1, 5000, 3, 100, x'');
INSERT INTO payloads VALUES (1, CAST('big' AS BLOB));
INSERT INTO jobs (key, queue, id, state, task, payload, tier, lane, created, at, due, max_stalls,
  keep, options, epoch, nonce, attempts, run)
  VALUES (2, 1, 'd', 'retrying', 't', x'', 5, 'default', 10, 20, 9000, 3, 100, x'', 1, 'w1/1', 1,
  7);
INSERT INTO jobs (key, queue, id, state, task, payload, tier, lane, created, at, owner, max_stalls,
  keep, options, epoch, nonce)
  VALUES (3, 1, 'a', 'active', 't', x'', 5, 'default', 10, 20, 1, 3, 100, x'', 1, 'w1/2');
INSERT INTO jobs (key, queue, id, state, task, payload, tier, lane, created, at, dies, max_stalls,
  keep, options, result)
  VALUES (4, 1, 'c', 'completed', 't', x'', 5, 'default', 10, 30, 9000, 3, 100, x'',
  CAST('42' AS BLOB));
INSERT INTO jobs (key, queue, id, state, task, payload, tier, lane, created, at, dies, max_stalls,
  keep, options, reason, error)
  VALUES (5, 1, 'f', 'failed', 't', x'', 5, 'default', 10, 40, 9000, 3, 100, x'', 'exhausted',
  'Boom');
INSERT INTO errors VALUES (1, 5, 40, 1, CAST('{"type":"Boom","message":""}' AS BLOB));
INSERT INTO calls VALUES (1, 'c1', 1, 7, 'q', 1990);
INSERT INTO events VALUES ((1 << 40) + 1, 10, 'queued	w	t	0				');
"""


@contextmanager
def opened(path: Path, halt: object = lambda: None) -> Iterator[sqlite3.Connection]:
    """Open a database as the storage does, with the function that the second step calls."""
    with closing(
        sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    ) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.create_function("halt", 0, halt)  # type: ignore[arg-type]
        yield connection


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the file of a database of schema 1."""
    path = tmp_path / "words.sqlite3"
    with opened(path) as connection:
        database.migrate(connection, "x", [FIRST])
    return path


def version(connection: sqlite3.Connection) -> int:
    [found] = connection.execute("PRAGMA user_version").fetchone()
    return int(found)


def test_a_new_database_goes_through_every_step(tmp_path: Path) -> None:
    with opened(tmp_path / "new.sqlite3") as connection:
        database.migrate(connection, "x", [FIRST, SECOND])
        assert version(connection) == 2
        assert connection.execute("SELECT * FROM words").fetchall() == [("one; two", 8)]


def test_an_older_database_goes_through_the_steps_that_it_lacks(path: Path) -> None:
    with opened(path) as connection:
        connection.execute("INSERT INTO words VALUES ('three')")
        for _ in range(2):
            database.migrate(connection, "x", [FIRST, SECOND])
            assert version(connection) == 2
            rows = connection.execute("SELECT * FROM words").fetchall()
            assert rows == [("one; two", 8), ("three", 5)]


def test_a_database_of_a_newer_release_is_refused_and_left_alone(path: Path) -> None:
    with opened(path) as connection:
        database.migrate(connection, "x", [FIRST, SECOND])
        with pytest.raises(StorageRefused, match="has schema 2, this release knows 1"):
            database.migrate(connection, "x", [FIRST])
        assert version(connection) == 2


def test_a_step_that_fails_leaves_the_old_schema(path: Path) -> None:
    with opened(path) as connection:
        broken = SECOND + "DROP TABLE nowhere;\n"
        with pytest.raises(sqlite3.OperationalError, match="no such table: nowhere"):
            database.migrate(connection, "x", [FIRST, broken])
        assert version(connection) == 1
        assert connection.execute("SELECT * FROM words").fetchall() == [("one; two",)]


async def test_a_process_that_is_killed_in_a_step_leaves_the_old_schema(
    path: Path, tmp_path: Path
) -> None:
    with WorkerProcess(sys.executable, "-c", KILLED, str(path), directory=tmp_path) as process:
        assert await process.wait() == -9
    with opened(path) as connection:
        assert version(connection) == 1
        assert connection.execute("SELECT * FROM words").fetchall() == [("one; two",)]
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        database.migrate(connection, "x", [FIRST, SECOND])
        assert version(connection) == 2


def test_who_opens_it_meanwhile_waits_and_does_nothing_twice(path: Path) -> None:
    is_halfway, may_go_on = threading.Event(), threading.Event()
    calls: list[str] = []

    def halt() -> None:
        calls.append(threading.current_thread().name)
        is_halfway.set()
        may_go_on.wait(10)

    with opened(path, halt) as one, opened(path, halt) as two:
        scripts = [FIRST, SECOND]
        first, second = (
            threading.Thread(target=database.migrate, args=(db, "x", scripts), name=name)
            for name, db in (("first", one), ("second", two))
        )
        first.start()
        assert is_halfway.wait(10)
        second.start()
        second.join(0.2)
        assert second.is_alive()
        may_go_on.set()
        first.join(10)
        second.join(10)
        assert calls == ["first"]
        assert version(one) == version(two) == 2


def test_a_database_that_another_process_makes_meanwhile_is_not_taken_for_a_strangers(
    tmp_path: Path,
) -> None:
    path = tmp_path / "words.sqlite3"
    with opened(path) as slow, opened(path) as fast:
        looks: list[str] = []

        def looked(statement: str) -> None:
            looks.append(statement)
            if len(looks) == 2:
                database.migrate(fast, "x", [FIRST])

        slow.set_trace_callback(looked)
        database.migrate(slow, "x", [FIRST])
        assert len(looks) > 2
        assert version(slow) == 1


def shape(connection: sqlite3.Connection) -> tuple[dict[str, Any], set[str]]:
    """Return the tables with their columns, and the indexes as they were written."""
    sql = "SELECT name, sql FROM sqlite_schema WHERE type = ?"
    tables = [name for name, _ in connection.execute(sql, ("table",))]
    indexes = {text for _, text in connection.execute(sql, ("index",))}
    columns = {
        name: connection.execute(f"PRAGMA table_xinfo({name})").fetchall() for name in tables
    }
    return columns, indexes


def test_a_new_storage_has_the_newest_schema(tmp_path: Path) -> None:
    with closing(database.open_database(place_of(f"file://{tmp_path}/data"))) as connection:
        assert version(connection) == database.SCHEMA
        assert "jobs" in shape(connection)[0]


@pytest.mark.parametrize("first", range(database.SCHEMA))
def test_the_steps_make_the_schema_of_a_new_storage(tmp_path: Path, first: int) -> None:
    steps = database.steps()
    with opened(tmp_path / "old") as old, opened(tmp_path / "new") as new:
        database.migrate(old, "x", steps[:first])
        database.migrate(old, "x", steps)
        database.migrate(new, "x", steps, whole=database.schema())
        assert version(old) == version(new) == database.SCHEMA
        assert shape(old) == shape(new)


@pytest.mark.parametrize("first", [1, 2, 3])
async def test_what_an_older_storage_held_is_there_after_the_steps(
    tmp_path: Path, first: int
) -> None:
    place = place_of(f"file://{tmp_path}/data")
    place.path.parent.mkdir()
    with opened(place.path) as connection:
        database.migrate(connection, "x", database.steps()[: min(first, 2)])
        connection.executescript(OLD_ROWS)
        database.migrate(connection, "x", database.steps()[:first])
    storage = SqliteStorage(f"file://{tmp_path}/data", clock=lambda: NOW_MS).for_tenant("acme")
    try:
        problems = await storage.engine().writer.run(sqlite_check.problems, lambda: NOW_MS)
        assert problems == []
        records = {job_id: await storage.get("mail", job_id) for job_id in "wdacf"}
        assert {i: record and record.state.value for i, record in records.items()} == {
            "w": "queued",
            "d": "retrying",
            "a": "active",
            "c": "completed",
            "f": "failed",
        }
        waiting, delayed, active, completed, failed = records.values()
        assert waiting is not None
        assert (waiting.payload, waiting.created_ms, waiting.expires_ms) == (b"big", 10, 5_000)
        assert delayed is not None
        assert (delayed.due_ms, delayed.run_ms, delayed.failures) == (9_000, 7, 1)
        assert active is not None
        assert (active.incarnation, active.starts) == ("w1", 1)
        assert completed is not None
        assert (completed.result, completed.changed_ms) == (b"42", 30)
        assert failed is not None
        assert [(error.type, error.at_ms) for error in failed.errors] == [("Boom", 40)]
        assert await storage.get("mail", "gone") is None
        [worker] = await storage.workers("mail")
        assert (worker.incarnation, worker.registered_ms, worker.active) == ("w1", 15, 1)
        stats = await storage.stats("mail")
        assert (stats.queued, stats.retrying, stats.active, stats.settings.events) == (1, 1, 1, 77)
        [event] = (await storage.events("mail")).events
        assert (event.job_id, event.at_ms, event.number) == ("w", 10, 0)
        outcomes = await storage.enqueue("mail", [a_job("w")], call=CallId("c1", 7))
        assert outcomes == [EnqueueOutcome.QUEUED]  # remembered
        outcomes = await storage.enqueue("mail", [a_job("w"), a_job("f")], call=CallId("c1", 8))
        assert outcomes == [EnqueueOutcome.DUPLICATE, EnqueueOutcome.QUEUED]
        call, slots = CallId("w1", 4), {"default": 9}
        reply = await storage.claim("mail", call=call, nonce="w1/4", slots=slots)
        assert [job.id for job in reply.jobs] == ["w", "f"]
        # Nobody knows the numbers of the old events: those that came since are counted.
        assert [e.number for e in (await storage.events("mail")).events] == [0, 1, 2, 3]
    finally:
        await storage.aclose()


def test_one_more_job_of_an_id_has_room_as_the_next_one(tmp_path: Path) -> None:
    sql = """
INSERT INTO jobs (queue, id, is_next, state, task, tier, lane, created_ms, changed_ms, max_stalls,
  keep_ms, options) VALUES (1, 'x', ?, 'queued', 't', 5, 'default', 0, 0, 3, 0, x'')
"""
    with closing(database.open_database(place_of(f"file://{tmp_path}/data"))) as connection:
        for is_next in (0, 1):
            connection.execute(sql, (is_next,))
            with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
                connection.execute(sql, (is_next,))

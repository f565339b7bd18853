"""An older database is brought to this release's schema, in one piece or not at all."""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from headrace.errors import StorageRefused
from headrace.storage.sqlite.engine import database
from headrace.storage.sqlite.engine.location import place_of
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


def test_the_steps_make_the_schema_of_a_new_storage(tmp_path: Path) -> None:
    with closing(database.open_database(place_of(f"file://{tmp_path}/data"))) as connection:
        assert version(connection) == len(database.STEPS)
        [tables] = connection.execute(
            "SELECT count(*) FROM sqlite_schema WHERE name = 'jobs'"
        ).fetchone()
        assert tables == 1

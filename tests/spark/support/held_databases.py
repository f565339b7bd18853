"""SQLite files in which what a bulk write has staged is published so far and no further."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from headrace.storage.sqlite.engine.location import place_of

_HOLD = """
CREATE VIEW forever AS
  WITH RECURSIVE counted (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM counted)
  SELECT count(*) AS n FROM counted;
CREATE TRIGGER held BEFORE DELETE ON staged WHEN (SELECT count(*) FROM staged) <= {left}
  BEGIN SELECT n FROM forever; END;
"""
"""Each piece is deleted in the transaction that publishes it: that one never ends."""

_LET_GO = "DROP TRIGGER held; DROP VIEW forever;"
_IS_HELD = "SELECT EXISTS (SELECT 1 FROM writes) AND (SELECT count(*) FROM staged) <= ?"


class HeldDatabase:
    """A database in which the publishing of its one write comes to a certain point.

    Args:
        url: where it is, already made.
        left: how many pieces are left then.
    """

    def __init__(self, url: str, *, left: int) -> None:
        self._path = place_of(url).path
        self._left = left
        self._run(_HOLD.format(left=left))

    def is_held(self) -> bool:
        """Whether it has come to that point."""
        return bool(self._read(_IS_HELD, self._left))

    def jobs(self) -> int:
        """Return how many jobs there are; an app would wait for who writes."""
        return self._read("SELECT count(*) FROM jobs")

    def let_go(self) -> None:
        """Have the next one publish the rest, once who was held has died."""
        self._run(_LET_GO)

    def _read(self, query: str, *values: int) -> int:
        with closing(sqlite3.connect(self._path)) as database:
            [found] = database.execute(query, values).fetchone()
        return int(found)

    def _run(self, script: str) -> None:
        with closing(sqlite3.connect(self._path)) as database:
            database.executescript(script)

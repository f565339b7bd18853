"""What is done with text in the database that is no UTF-8: SQLite stores any bytes, and reads none.

One such value fails every statement that comes across it, so it is mended at the first that does.
"""

from __future__ import annotations

import sqlite3

TABLES = (
    "queues",
    "jobs",
    "errors",
    "incarnations",
    "events",
    "schedules",
    "schedule_listeners",
    "schedule_releases",
    "stages",
    "writes",
)
UNIQUE = ("id", "channel", "digest", "token")
"""Columns with a name of its own for each row."""


def is_damage(error: BaseException) -> bool:
    """Whether a statement failed because a value is no text."""
    return isinstance(error, sqlite3.OperationalError) and "decode to UTF-8" in str(error)


def mend(db: sqlite3.Connection) -> int:
    """Replace what can't be read by U+FFFD, in all rows, and return how many values that were.

    A job whose task is damaged is then of an unknown one, and ends as any of those does.
    """
    return sum(_mend_table(db, table) for table in TABLES)


def _mend_table(db: sqlite3.Connection, table: str) -> int:
    info = db.execute(f"PRAGMA table_info({table})").fetchall()
    mended = 0
    for name in [row[1] for row in info if row[2] == "TEXT"]:
        sql = f"SELECT rowid, CAST({name} AS BLOB) FROM {table} WHERE {name} IS NOT NULL"  # noqa: S608
        strange = [row for row in db.execute(sql) if not _is_text(row[1])]
        for key, word in strange:
            # The key, since two may be damaged alike.
            text = word.decode(errors="replace") + (f".{key}" if name in UNIQUE else "")
            db.execute(f"UPDATE {table} SET {name} = ? WHERE rowid = ?", (text, key))  # noqa: S608
        mended += len(strange)
    return mended


def _is_text(word: bytes) -> bool:
    try:
        word.decode()
    except UnicodeDecodeError:
        return False
    return True

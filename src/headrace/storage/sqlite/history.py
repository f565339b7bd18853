"""What is kept of ended jobs: how many, how long, and how their records are erased."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from headrace.storage.sqlite.engine.rows import json_list

_ERASE = (
    "DELETE FROM jobs WHERE key IN (SELECT value FROM json_each(?))",
    "DELETE FROM payloads WHERE job IN (SELECT value FROM json_each(?))",
    "DELETE FROM errors WHERE job IN (SELECT value FROM json_each(?))",
    "DELETE FROM outputs WHERE job IN (SELECT value FROM json_each(?))",
)
# Oldest first; both states are in one index, each in its order.
_OLDEST = {
    "finished": """
SELECT key FROM (
  SELECT * FROM (
    SELECT key, changed_ms FROM jobs
    WHERE queue = ?1 AND state = 'completed' AND purge_at_ms IS NOT NULL
    ORDER BY changed_ms LIMIT ?2
  )
  UNION ALL
  SELECT * FROM (
    SELECT key, changed_ms FROM jobs
    WHERE queue = ?1 AND state = 'cancelled' AND purge_at_ms IS NOT NULL
    ORDER BY changed_ms LIMIT ?2
  )
) ORDER BY changed_ms, key LIMIT ?2
""",
    "dead": """
SELECT key FROM jobs WHERE queue = ?1 AND state = 'failed' AND purge_at_ms IS NOT NULL
ORDER BY changed_ms, key LIMIT ?2
""",
}
_OLD_LETTERS = """
SELECT key, state FROM jobs
WHERE queue = ? AND state = 'failed' AND purge_at_ms IS NOT NULL AND changed_ms <= ? LIMIT ?
"""
_OVER = "SELECT key, state FROM jobs WHERE queue = ? AND purge_at_ms <= ? LIMIT ?"
_ORPHANS = """
DELETE FROM {table} WHERE job IN (
  SELECT {table}.job FROM {table} LEFT JOIN jobs ON jobs.key = {table}.job WHERE jobs.key IS NULL
)
"""


def erase(db: sqlite3.Connection, keys: Iterable[int]) -> None:
    """Delete records and what lies beside them."""
    listed = json_list(keys)
    for sql in _ERASE:
        db.execute(sql, (listed,))


def erase_oldest(db: sqlite3.Connection, queue: int, pile: str, most: int) -> int:
    """Delete the records of a pile that ended first; return how many those were."""
    oldest = db.execute(_OLDEST[pile], (queue, most)).fetchall()
    erase(db, [key for (key,) in oldest])
    return len(oldest)


def erase_orphans(db: sqlite3.Connection) -> int:
    """Delete what lies beside no record; return how many rows those were."""
    tables = ("payloads", "errors", "outputs")
    return sum(db.execute(_ORPHANS.format(table=table)).rowcount for table in tables)


def over(
    db: sqlite3.Connection, queue: int, *, now_ms: int, dead_letter_ttl_ms: int, limit: int
) -> list[tuple[int, str]]:
    """Return keys and states of records whose time is over, dead letters by the queue's setting."""
    letters = db.execute(_OLD_LETTERS, (queue, now_ms - dead_letter_ttl_ms, limit)).fetchall()
    seen = {key for key, _ in letters}
    rest = db.execute(_OVER, (queue, now_ms, limit)).fetchall()
    return (letters + [row for row in rest if row[0] not in seen])[:limit]

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
BESIDE = ("payloads", "errors", "outputs")
"""The tables of what lies beside records."""

_SPAN = """
SELECT coalesce(max(job), 0), count(*) FROM (
  SELECT job FROM {table} WHERE job > ? ORDER BY job LIMIT ?
)
"""
_ORPHANS = """
DELETE FROM {table}
WHERE job > ? AND job <= ? AND NOT EXISTS (SELECT 1 FROM jobs WHERE key = {table}.job)
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


def erase_orphans(
    db: sqlite3.Connection, table: str, behind: int, limit: int
) -> tuple[int, int, int]:
    """Delete what lies beside no record, behind that of one key.

    Returns:
        The key of the last record whose rows were looked at, how many rows those were at least, and
        how many of them are deleted.
    """
    last, n = db.execute(_SPAN.format(table=table), (behind, limit)).fetchone()
    return last, n, db.execute(_ORPHANS.format(table=table), (behind, last)).rowcount


def over(
    db: sqlite3.Connection, queue: int, *, now_ms: int, dead_letter_ttl_ms: int, limit: int
) -> list[tuple[int, str]]:
    """Return keys and states of records whose time is over, dead letters by the queue's setting."""
    letters = db.execute(_OLD_LETTERS, (queue, now_ms - dead_letter_ttl_ms, limit)).fetchall()
    seen = {key for key, _ in letters}
    rest = db.execute(_OVER, (queue, now_ms, limit)).fetchall()
    return (letters + [row for row in rest if row[0] not in seen])[:limit]

"""What happened to a queue's jobs, a line each: gathered in a call, and read."""

from __future__ import annotations

import sqlite3

from headrace.storage.limits import EVENTS_AN_ENTRY, EVENTS_TRIMMED_A_CALL
from headrace.storage.lines import read_lines
from headrace.storage.values import EventPage

QUEUE_SHIFT = 40
"""An entry's key is its queue's, shifted by so many bits, and its number in the queue."""

_ADD = "INSERT INTO events (key, at_ms, lines, n) VALUES (?, ?, ?, ?)"
_TRIM = """
DELETE FROM events WHERE key BETWEEN ?1 AND min(
  ?2 - iif(EXISTS (SELECT 1 FROM readers WHERE queue = ?3), ?4, ?5),
  (SELECT min(key) FROM events WHERE key >= ?1) + ?6
)
"""
_ERASE = """
DELETE FROM events WHERE key IN (SELECT key FROM events WHERE key BETWEEN ? AND ? LIMIT ?)
"""
_COUNT = "SELECT count(*) FROM events WHERE key BETWEEN ? AND ?"
_READ = "SELECT key, at_ms, lines, n FROM events WHERE key > ? AND key < ? ORDER BY key LIMIT ?"


class Events:
    """The events of one call."""

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(
        self,
        kind: str,
        job_id: str,
        task: str,
        *,
        start: int = 0,
        worker: str = "",
        wait_ms: int = 0,
        run_ms: int = 0,
        detail: str = "",
    ) -> None:
        """Note a transition; neither ids nor task names hold control characters.

        ``detail`` has the parts that `headrace.storage.lines` says, a tab between two.
        """
        self._lines.append(
            f"{kind}\t{job_id}\t{task}\t{start}\t{worker}\t{wait_ms}\t{run_ms}\t{detail}"
        )

    def write(
        self,
        db: sqlite3.Connection,
        queue: int,
        *,
        now_ms: int,
        last: int,
        told: int,
        limit: int,
        cap: int,
    ) -> tuple[int, int]:
        """Write several events an entry: one each would double the cost of a transition.

        Args:
            db: where to.
            queue: its key.
            now_ms: when they happened.
            last: the number of the queue's last entry.
            told: the number of its last event.
            limit: how many entries the queue keeps.
            cap: how many while there is a reader, if that is more.

        Returns:
            The numbers of the last entry and of the last event now.
        """
        if not self._lines:
            return last, told
        rows = []
        base = queue << QUEUE_SHIFT
        for first in range(0, len(self._lines), EVENTS_AN_ENTRY):
            last += 1
            lines = self._lines[first : first + EVENTS_AN_ENTRY]
            told += len(lines)
            rows.append((base + last, now_ms, "\n".join(lines), told))
        db.executemany(_ADD, rows)
        most = max(EVENTS_TRIMMED_A_CALL, len(rows))
        db.execute(_TRIM, (base, base + last, queue, max(limit, cap), limit, most))
        return last, told


def read(db: sqlite3.Connection, queue: int, seen: int, limit: int) -> EventPage:
    """Return the events of a queue after an entry, those of ``limit`` entries at most."""
    base = queue << QUEUE_SHIFT
    seen = min(seen, 1 << QUEUE_SHIFT)
    rows = db.execute(_READ, (base + seen, (queue + 1) << QUEUE_SHIFT, limit)).fetchall()
    ids = [f"{at_ms}-{key - base}" for key, at_ms, *_ in rows]
    events = [
        event
        for stream_id, (_, at_ms, lines, n) in zip(ids, rows, strict=True)
        for event in read_lines(lines, stream_id=stream_id, at_ms=at_ms, last=n)
    ]
    return EventPage(events=events, last_id=ids[-1] if ids else "")


def erase(db: sqlite3.Connection, queue: int, *, limit: int) -> int:
    """Delete a number of a queue's entries; return how many are left."""
    span = (queue << QUEUE_SHIFT, (queue + 1) << QUEUE_SHIFT)
    db.execute(_ERASE, (*span, limit))
    [left] = db.execute(_COUNT, span).fetchone()
    return int(left)

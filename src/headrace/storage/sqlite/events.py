"""What happened to a queue's jobs, a line each: gathered in a call, and read."""

from __future__ import annotations

import sqlite3

from headrace.storage.event_pages import EventLines, EventPlace, EventSpan
from headrace.storage.limits import EVENTS_AN_ENTRY, EVENTS_TRIMMED_A_CALL
from headrace.storage.lines import read_lines
from headrace.storage.values import EventPage

QUEUE_SHIFT = 40
"""An entry's key is its queue's, shifted by so many bits, and its number in the queue."""

LAST_ENTRY = (1 << QUEUE_SHIFT) - 1
"""No entry has a higher number."""

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
_ENTRIES = """
SELECT key, at_ms, n, CAST(lines AS BLOB) FROM events WHERE key > ? AND key <= ?
ORDER BY key LIMIT ?
"""
_LAST = """
SELECT key, at_ms, n, CAST(lines AS BLOB) FROM events WHERE key BETWEEN ? AND ?
ORDER BY key DESC LIMIT 1
"""
_WHEN = "SELECT at_ms FROM events WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT 1"


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


def read_entries(
    db: sqlite3.Connection, queue: int, seen: int, last: int, limit: int
) -> list[EventLines]:
    """Return the entries of a queue after one and up to one, at most ``limit``."""
    base = queue << QUEUE_SHIFT
    bounds = (base + min(seen, LAST_ENTRY), base + min(last, LAST_ENTRY))
    return [_entry(row) for row in db.execute(_ENTRIES, (*bounds, limit)).fetchall()]


def span(db: sqlite3.Connection, queue: int) -> EventSpan:
    """Return the first and the last entry of a queue."""
    first = read_entries(db, queue, 0, LAST_ENTRY, 1)
    return EventSpan(first[0].place if first else None, _last_up_to(db, queue, LAST_ENTRY))


def place_at(db: sqlite3.Connection, queue: int, last: int, at_ms: int) -> EventPlace | None:
    """Return the last entry of a queue that is no later than an instant.

    Args:
        db: where to look.
        queue: its key.
        last: the number of the queue's last entry.
        at_ms: the instant.
    """
    base = queue << QUEUE_SHIFT
    # The last entry up to `low` is no later, if there is one; that up to `high` is.
    low, high = 0, last + 1
    while high - low > 1:
        middle = (low + high) // 2
        found = db.execute(_WHEN, (base, base + middle)).fetchone()
        if found is None or found[0] <= at_ms:
            low = middle
        else:
            high = middle
    return _last_up_to(db, queue, low)


def _last_up_to(db: sqlite3.Connection, queue: int, entry: int) -> EventPlace | None:
    base = queue << QUEUE_SHIFT
    row = db.execute(_LAST, (base, base + entry)).fetchone()
    return None if row is None else _entry(row).place


def _entry(row: tuple[int, int, int, bytes]) -> EventLines:
    key, at_ms, n, lines = row
    return EventLines(f"{at_ms}-{key & LAST_ENTRY}", n, lines)


def erase(db: sqlite3.Connection, queue: int, *, limit: int) -> int:
    """Delete a number of a queue's entries; return how many are left."""
    span = (queue << QUEUE_SHIFT, (queue + 1) << QUEUE_SHIFT)
    db.execute(_ERASE, (*span, limit))
    [left] = db.execute(_COUNT, span).fetchone()
    return int(left)

"""One call's view of a queue: its row, and what it gathers to write once at the end.

Every verb opens it first and closes it last.
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.values import QueueSettings

EVENTS_AN_ENTRY = 20
EVENT_SHIFT = 40
STATS_BUCKET_MS = 10_000
STATS_TTL_MS = 3_600_000
COUNTS = ("queued", "scheduled", "retrying", "active", "finished", "dead")

_OPEN = """
SELECT key, is_listed, is_paused, history, dead_letters, dead_letter_ttl_ms, events,
  queued, scheduled, retrying, active, finished, dead, head, tail, event, wake
FROM queues WHERE tenant = ? AND name = ?
"""
_CREATE = "INSERT INTO queues (tenant, name) VALUES (?, ?)"
_CLOSE = """
UPDATE queues SET queued = ?, scheduled = ?, retrying = ?, active = ?, finished = ?, dead = ?,
  head = ?, tail = ?, event = ?, wake = ?
WHERE key = ?
"""
_TALLY = """
INSERT INTO stats (queue, bucket, field, n) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET n = n + excluded.n
"""
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
    SELECT key, at FROM jobs WHERE queue = ?1 AND state = 'completed' AND dies IS NOT NULL
    ORDER BY at LIMIT ?2
  )
  UNION ALL
  SELECT * FROM (
    SELECT key, at FROM jobs WHERE queue = ?1 AND state = 'cancelled' AND dies IS NOT NULL
    ORDER BY at LIMIT ?2
  )
) ORDER BY at, key LIMIT ?2
""",
    "dead": """
SELECT key FROM jobs WHERE queue = ?1 AND state = 'failed' AND dies IS NOT NULL
ORDER BY at, key LIMIT ?2
""",
}


def json_list(values: Iterable[Any]) -> str:
    """Return values as the JSON that ``json_each`` reads: one statement for all of them."""
    return msgspec.json.encode(list(values)).decode()


@lru_cache(maxsize=10_000)
def bucket_bound(value_ms: int) -> int:
    """Return the upper bound of a bucket that grows by a tenth."""
    if value_ms <= 0:
        return 0
    exponent = math.ceil(math.log(value_ms) / math.log(1.1) - 1e-9)
    return math.ceil(1.1**exponent)


class View:
    """A queue in one call."""

    def __init__(self, step: Step, name: QueueName, row: tuple[int, ...]) -> None:
        self.db: sqlite3.Connection = step.db
        self.now: int = step.now
        self.step: Step = step
        self.tenant: str = name[0]
        self.queue: str = name[1]
        self.key: int = row[0]
        self.is_listed: bool = bool(row[1])
        self.is_paused: bool = bool(row[2])
        self.settings: QueueSettings = QueueSettings(
            history=row[3], dead_letters=row[4], dead_letter_ttl_ms=row[5], events=row[6]
        )
        self.counts: dict[str, int] = dict(zip(COUNTS, row[7:13], strict=True))
        self._head, self._tail, self._event, self._wake = row[13:17]
        self._before = row[7:17]
        self._added: Counter[str] = Counter()
        self._stats: Counter[str] = Counter()
        self._events: list[str] = []
        self._writes: dict[str, list[tuple[Any, ...]]] = {}
        self._erased: list[int] = []
        self._first_due: int | None = None
        self._is_due_known = False
        self._lanes_to_wake: set[str] = set()
        self._wakes_all = False

    def count(self, state: str, delta: int) -> None:
        """Note that jobs came to a state or left it; ended ones count as finished or dead."""
        self.counts[state] += delta
        if delta > 0:
            self._added[state] += delta

    def tally(self, field: str, n: int = 1) -> None:
        """Count for the statistics."""
        self._stats[field] += n

    def observe(self, name: str, value_ms: int) -> None:
        """Put a duration in its bucket."""
        self._stats[f"{name}:{bucket_bound(value_ms)}"] += 1

    def event(
        self,
        kind: str,
        job_id: str,
        task: str,
        *,
        attempt: int = 0,
        worker: str = "",
        wait_ms: int = 0,
        run_ms: int = 0,
        detail: str = "",
    ) -> None:
        """Note a transition; neither ids nor task names hold control characters."""
        self._events.append(
            f"{kind}\t{job_id}\t{task}\t{attempt}\t{worker}\t{wait_ms}\t{run_ms}\t{detail}"
        )

    def next_tail(self) -> int:
        """Return the place behind everything that is ready."""
        self._tail += 1
        return self._tail

    @property
    def tail(self) -> int:
        """The last place given out at the tail."""
        return self._tail

    def next_head(self) -> int:
        """Return the place before everything that is ready."""
        self._head -= 1
        return self._head

    def first_due(self) -> int | None:
        """Return when the next delayed job is due."""
        if not self._is_due_known:
            sql = "SELECT min(due) FROM jobs WHERE queue = ? AND due IS NOT NULL"
            [self._first_due] = self.db.execute(sql, (self.key,)).fetchone()
            self._is_due_known = True
        return self._first_due

    def note_due(self, due: int, lane: str) -> None:
        """Wake a consumer of the lane when the queue's next due time comes earlier."""
        first = self.first_due()
        if first is None or due < first:
            self._first_due = due
            self.wake(lane)

    def forget_due(self) -> None:
        """Look anew for the next due time."""
        self._is_due_known = False

    def write(self, sql: str, values: tuple[Any, ...]) -> None:
        """Write with others of its kind; a job may be in one kind of write only until `flush`."""
        rows = self._writes.get(sql)
        if rows is None:
            rows = self._writes[sql] = []
        rows.append(values)

    def erase(self, key: int) -> None:
        """Delete a record and what lies beside it."""
        self._erased.append(key)

    def flush(self) -> None:
        """Write what was gathered of jobs."""
        for sql, rows in self._writes.items():
            self.db.executemany(sql, rows)
        self._writes = {}
        if self._erased:
            keys = json_list(self._erased)
            for sql in _ERASE:
                self.db.execute(sql, (keys,))
            self._erased = []

    def wake(self, lane: str) -> None:
        """Leave a wake-up for whoever consumes a lane, at the end of the call."""
        self._lanes_to_wake.add(lane)

    def wake_all(self) -> None:
        """Leave one in every lane that has ready jobs then, or the first to fall due."""
        self._wakes_all = True

    def has_ready(self, lane: str) -> bool:
        """Whether a lane has a ready job, those still to be written aside."""
        sql = "SELECT 1 FROM jobs WHERE queue = ? AND lane = ? AND seq IS NOT NULL LIMIT 1"
        return self.db.execute(sql, (self.key, lane)).fetchone() is not None

    def ready_lanes(self) -> list[str]:
        """Return the lanes that have ready jobs, by name."""
        # From one to the next by the index: DISTINCT would read every ready job.
        sql = "SELECT min(lane) FROM jobs WHERE queue = ? AND seq IS NOT NULL AND lane > ?"
        lanes: list[str] = []
        lane = ""
        while True:
            [lane] = self.db.execute(sql, (self.key, lane)).fetchone()
            if lane is None:
                return lanes
            lanes.append(lane)

    def _leave_wakes(self) -> None:
        lanes = self._lanes_to_wake
        if self._wakes_all:
            lanes.update(self.ready_lanes())
            sql = "SELECT lane FROM jobs WHERE queue = ? AND due IS NOT NULL ORDER BY due LIMIT 1"
            lanes.update(lane for (lane,) in self.db.execute(sql, (self.key,)).fetchall())
        if lanes and not self.is_paused:
            self._wake += 1
            self.step.effects.wakes[self.tenant, self.queue] = (self._wake, frozenset(lanes))

    def close(self) -> None:
        """Write everything."""
        self.flush()
        if self._added:
            self._bound("finished", self.settings.history)
            self._bound("dead", self.settings.dead_letters)
        if self._stats:
            self._write_stats()
        if self._events:
            self._write_events()
        self._leave_wakes()
        now = (*self.counts.values(), self._head, self._tail, self._event, self._wake)
        if now != self._before:
            self.db.execute(_CLOSE, (*now, self.key))

    def _bound(self, name: str, limit: int) -> None:
        added = self._added[name]
        excess = self.counts[name] - limit
        if not added or excess <= 0:
            return
        # More than came in, so that a lowered limit is reached, but bounded.
        most = min(excess, added + 100)
        oldest = self.db.execute(_OLDEST[name], (self.key, most)).fetchall()
        for (key,) in oldest:
            self.erase(key)
        self.counts[name] -= len(oldest)
        self.flush()

    def _write_stats(self) -> None:
        bucket = self.now - self.now % STATS_BUCKET_MS
        self.db.executemany(
            _TALLY, [(self.key, bucket, field, n) for field, n in self._stats.items()]
        )
        sql = "DELETE FROM stats WHERE queue = ? AND bucket < ?"
        self.db.execute(sql, (self.key, self.now - STATS_TTL_MS))

    def _write_events(self) -> None:
        """Write several events an entry: one each would double the cost of a transition."""
        rows = []
        base = self.key << EVENT_SHIFT
        for first in range(0, len(self._events), EVENTS_AN_ENTRY):
            self._event += 1
            lines = "\n".join(self._events[first : first + EVENTS_AN_ENTRY])
            rows.append((base + self._event, self.now, lines))
        self.db.executemany("INSERT INTO events (key, at, lines) VALUES (?, ?, ?)", rows)
        last = base + self._event - self.settings.events
        self.db.execute("DELETE FROM events WHERE key BETWEEN ? AND ?", (base, last))


def find_view(step: Step, name: QueueName) -> View | None:
    """Open a queue that is there."""
    row = step.db.execute(_OPEN, name).fetchone()
    return None if row is None else View(step, name, row)


def open_view(step: Step, name: QueueName) -> View:
    """Open a queue; make it if it is new."""
    view = find_view(step, name)
    if view is None:
        step.db.execute(_CREATE, name)
        view = find_view(step, name)
        assert view is not None  # noqa: S101  # it was just made
    return view


def list_queue(view: View) -> None:
    """Put a queue on its tenant's list."""
    if not view.is_listed:
        view.db.execute("UPDATE queues SET is_listed = 1 WHERE key = ?", (view.key,))

"""Who is told after a call: the consumers of which lanes look again, and which waiters hear."""

from __future__ import annotations

import sqlite3

import msgspec

from headrace.storage.sqlite.engine.step import Step
from headrace.storage.values import End

_FIRST_DUE = "SELECT min(due_ms) FROM jobs WHERE queue = ? AND due_ms IS NOT NULL"
_FIRST_DUE_LANE = (
    "SELECT lane FROM jobs WHERE queue = ? AND due_ms IS NOT NULL ORDER BY due_ms LIMIT 1"
)
# From one to the next by the index: DISTINCT would read every ready job.
_NEXT_LANE = "SELECT min(lane) FROM jobs WHERE queue = ? AND seq IS NOT NULL AND lane > ?"
_HAS_READY = "SELECT 1 FROM jobs WHERE queue = ? AND lane = ? AND seq IS NOT NULL LIMIT 1 OFFSET ?"
_POST = "INSERT INTO messages (process, channel, at_ms, body) VALUES (?, ?, ?, ?)"


class Wakes:
    """The lanes of a queue in which a call leaves a wake-up, and when its next job is due.

    Args:
        db: where the queue is.
        queue: its key.
    """

    __slots__ = ("_db", "_first_due_ms", "_is_due_known", "_lanes", "_queue", "_wakes_all")

    def __init__(self, db: sqlite3.Connection, queue: int) -> None:
        self._db = db
        self._queue = queue
        self._lanes: set[str] = set()
        self._wakes_all = False
        self._first_due_ms: int | None = None
        self._is_due_known = False

    def lane(self, lane: str) -> None:
        """Leave a wake-up for whoever consumes a lane, at the end of the call."""
        self._lanes.add(lane)

    def all(self) -> None:
        """Leave one in every lane that has ready jobs then, or the first to fall due."""
        self._wakes_all = True

    def first_due_ms(self) -> int | None:
        """Return when the next delayed job is due."""
        if not self._is_due_known:
            [self._first_due_ms] = self._db.execute(_FIRST_DUE, (self._queue,)).fetchone()
            self._is_due_known = True
        return self._first_due_ms

    def delayed(self, due_ms: int, lane: str) -> None:
        """Wake a consumer of the lane when the queue's next due time comes earlier."""
        first = self.first_due_ms()
        if first is None or due_ms < first:
            self._first_due_ms = due_ms
            self.lane(lane)

    def gate(self, due_ms: int, lane: str) -> None:
        """Wake a consumer of the lane when a gate is due before the next delayed job."""
        first = self.first_due_ms()
        if first is None or due_ms < first:
            self.lane(lane)

    def forget_due(self) -> None:
        """Look anew for the next due time."""
        self._is_due_known = False

    def lanes(self) -> frozenset[str]:
        """Return the lanes in which to leave a wake-up, by what is written by now."""
        if self._wakes_all:
            self._lanes.update(ready_lanes(self._db, self._queue))
            due = self._db.execute(_FIRST_DUE_LANE, (self._queue,)).fetchone()
            if due is not None:
                self._lanes.add(due[0])
        return frozenset(self._lanes)


def ready_lanes(db: sqlite3.Connection, queue: int) -> list[str]:
    """Return the lanes of a queue that have ready jobs, by name."""
    lanes: list[str] = []
    lane = ""
    while True:
        [lane] = db.execute(_NEXT_LANE, (queue, lane)).fetchone()
        if lane is None:
            return lanes
        lanes.append(lane)


def has_ready(db: sqlite3.Connection, queue: int, lane: str, *, beside: int = 0) -> bool:
    """Whether a lane has a ready job, those still to be written and so many others aside."""
    return db.execute(_HAS_READY, (queue, lane, beside)).fetchone() is not None


def notify(step: Step, channel: str, end: End) -> None:
    """Tell a waiter of this process after the commit, one of another by a message."""
    process = channel.partition(".")[0]
    if process == step.process:
        step.effects.ends.append((channel, end))
        return
    step.db.execute(_POST, (process, channel, step.now_ms, msgspec.msgpack.encode(end)))
    step.effects.has_messages = True

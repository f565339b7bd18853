"""One call on a queue: the queue's row, and what the call gathers to write once at the end.

Every verb opens a unit of work first and closes it last.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import msgspec

from headrace.storage.queues import QueueSettings
from headrace.storage.sqlite import history
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.events import Events
from headrace.storage.sqlite.gates import Gates
from headrace.storage.sqlite.stats import Stats
from headrace.storage.sqlite.wake import Wakes

COUNTS = ("queued", "scheduled", "retrying", "active", "finished", "dead", "blocked")
_PILES = {"completed": "finished", "cancelled": "finished", "failed": "dead"}
"""Under which count ended jobs are kept; the others are under their state."""


_SETTINGS = QueueSettings.__struct_fields__
_STRUCK = ("is_struck", "has_conditions", "strikes_version")
_PLACES = ("head", "tail", "event", "wake", "told", "gate_due_ms")
_OPEN = f"""
SELECT key, is_listed, is_paused, {", ".join((*_STRUCK, *_SETTINGS, *COUNTS, *_PLACES))}
FROM queues WHERE tenant = ? AND name = ?
"""  # noqa: S608
_CREATE = f"""
INSERT INTO queues (tenant, name, {", ".join(_SETTINGS)})
VALUES (?, ?, {", ".join("?" * len(_SETTINGS))})
"""  # noqa: S608
_CLOSE = (
    f"UPDATE queues SET {', '.join(f'{name} = ?' for name in (*COUNTS, *_PLACES))} WHERE key = ?"  # noqa: S608
)
_SETTINGS_AT = 3 + len(_STRUCK)
_COUNTS_AT = _SETTINGS_AT + len(_SETTINGS)
_PLACES_AT = _COUNTS_AT + len(COUNTS)


class UnitOfWork:
    """What one call does on a queue.

    Attributes:
        db: the connection, in the call's transaction.
        step: the call.
        now_ms: the call's time.
        tenant: whose queue.
        queue: its name.
        key: its key.
        is_listed: whether it is on its tenant's list.
        is_paused: whether claims are stopped.
        is_struck: whether a strike says no more than a task.
        strikes_version: that of the strikes that say more, 0 without any.
        settings: what it keeps.
        counts: how many jobs are in each state, ended ones as finished or dead.
        events: what happened in this call.
        last_entry: the number of the last entry of events, before this call.
        told: the number of the last event, before this call.
        gate_due_ms: when the line of a gate is to be looked at, None for never.
        gates: the gates of limits that it has to do with.
        stats: what it counts for the statistics.
        wakes: who is to look at the queue after it.
    """

    def __init__(self, step: Step, name: QueueName, row: tuple[Any, ...]) -> None:
        self.db: sqlite3.Connection = step.db
        self.step: Step = step
        self.now_ms: int = step.now_ms
        self.tenant: str = name[0]
        self.queue: str = name[1]
        self.key: int = row[0]
        self.is_listed: bool = bool(row[1])
        self.is_paused: bool = bool(row[2])
        self.is_struck: bool = bool(row[3])
        self.strikes_version: int = row[5] if row[4] else 0
        self.settings: QueueSettings = QueueSettings(
            **dict(zip(_SETTINGS, row[_SETTINGS_AT:_COUNTS_AT], strict=True))
        )
        self.counts: dict[str, int] = dict(zip(COUNTS, row[_COUNTS_AT:_PLACES_AT], strict=True))
        self.events: Events = Events()
        self.stats: Stats = Stats()
        self.wakes: Wakes = Wakes(step.db, row[0])
        self._head: int
        self._tail: int
        self.last_entry: int
        self.told: int
        self.gate_due_ms: int | None
        (self._head, self._tail, self.last_entry, self._wake, self.told, self.gate_due_ms) = row[
            _PLACES_AT:
        ]
        self.gates: Gates = Gates(step.db, row[0], now_ms=step.now_ms)
        self._before = row[_COUNTS_AT:]
        self._ended: defaultdict[str, int] = defaultdict(int)
        self._writes: dict[str, list[tuple[Any, ...]]] = {}
        self._erased: list[int] = []

    def enter(self, state: str, n: int = 1) -> None:
        """Count jobs that came to a state."""
        pile = _PILES.get(state)
        if pile is None:
            self.counts[state] += n
        else:
            self.counts[pile] += n
            self._ended[pile] += n

    def leave(self, state: str, n: int = 1) -> None:
        """Count jobs that left a state."""
        self.counts[_PILES.get(state, state)] -= n

    def recount(self, found: Mapping[str, int]) -> int:
        """Bring the counts back to the jobs that there are in each state.

        Returns:
            How many counts were wrong.
        """
        counts = dict.fromkeys(COUNTS, 0)
        for state, n in found.items():
            counts[_PILES.get(state, state)] += n
        wrong = sum(self.counts[pile] != n for pile, n in counts.items())
        self.counts.update(counts)
        return wrong

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

    def write(self, sql: str, values: tuple[Any, ...]) -> None:
        """Write with others of its kind; a job may be in one kind of write only until `flush`."""
        rows = self._writes.get(sql)
        if rows is None:
            rows = self._writes[sql] = []
        rows.append(values)

    def erase(self, key: int) -> None:
        """Delete a record and what lies beside it."""
        self._erased.append(key)

    def erase_ended(self, key: int, state: str) -> None:
        """Delete the record of a job that ended in a state; it is counted no more."""
        self.leave(state)
        self._erased.append(key)

    def flush(self) -> None:
        """Write what was gathered of jobs."""
        for sql, rows in self._writes.items():
            self.db.executemany(sql, rows)
        self._writes = {}
        if self._erased:
            history.erase(self.db, self._erased)
            self._erased = []

    def write_gates(self, *, wakes: bool = True) -> None:
        """Write what was changed of gates.

        Args:
            wakes: wake a consumer where one is due before anything else was.
        """
        before_ms = self.gate_due_ms
        self.gate_due_ms, lane = self.gates.write(before_ms)
        due_ms = self.gate_due_ms
        if wakes and lane and due_ms is not None and (before_ms is None or due_ms < before_ms):
            self.wakes.gate(due_ms, lane)

    def close(self) -> None:
        """Write everything."""
        self.flush()
        self.write_gates()
        if self._ended:
            self._trim("finished", self.settings.history)
            self._trim("dead", self.settings.dead_letters)
        self.stats.write(self.db, self.key, now_ms=self.now_ms)
        self.last_entry, self.told = self.events.write(
            self.db,
            self.key,
            now_ms=self.now_ms,
            last=self.last_entry,
            told=self.told,
            limit=self.settings.events,
            cap=self.settings.events_cap,
        )
        lanes = self.wakes.lanes()
        if lanes and not self.is_paused:
            self._wake += 1
            self.step.effects.wakes[self.tenant, self.queue] = (self._wake, lanes)
        places = (
            *(self._head, self._tail, self.last_entry, self._wake, self.told),
            self.gate_due_ms,
        )
        now = (*self.counts.values(), *places)
        if now != self._before:
            self.db.execute(_CLOSE, (*now, self.key))

    def _trim(self, pile: str, limit: int) -> None:
        added = self._ended[pile]
        excess = self.counts[pile] - limit
        if added and excess > 0:
            # More than came in, so that a lowered limit is reached, but bounded.
            most = min(excess, added + 100)
            self.counts[pile] -= history.erase_oldest(self.db, self.key, pile, most)


def find_unit(step: Step, name: QueueName) -> UnitOfWork | None:
    """Begin on a queue that is there."""
    row = step.db.execute(_OPEN, name).fetchone()
    return None if row is None else UnitOfWork(step, name, row)


def open_unit(step: Step, name: QueueName) -> UnitOfWork:
    """Begin on a queue; make it if it is new."""
    unit = find_unit(step, name)
    if unit is None:
        step.db.execute(_CREATE, (*name, *msgspec.structs.astuple(QueueSettings())))
        unit = find_unit(step, name)
        assert unit is not None  # noqa: S101  # it was just made
    return unit


def set_settings(db: sqlite3.Connection, key: int, changes: Mapping[str, object]) -> None:
    """Change settings of a queue; those that aren't named stay."""
    names = [name for name in _SETTINGS if name in changes]
    columns = ", ".join(f"{name} = ?" for name in names)
    values = [changes[name] for name in names]
    db.execute(f"UPDATE queues SET {columns} WHERE key = ?", (*values, key))  # noqa: S608


def list_queue(unit: UnitOfWork) -> None:
    """Put a queue on its tenant's list."""
    if not unit.is_listed:
        unit.db.execute("UPDATE queues SET is_listed = 1 WHERE key = ?", (unit.key,))

"""The gates of limits: who has a place in them, who waits in their lines, and when they are due.

Nothing here moves a job. What gives a job its place asks `Gates` first and tells it after; what a
call has changed is written at its end.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec

from headrace.fairness import is_window
from headrace.limit import Terms, read_gates, read_terms
from headrace.storage.limits import GATE_LOOKS
from headrace.storage.sqlite import turns
from headrace.storage.sqlite.bucket import Bucket, paid

_TERMS = "SELECT declared, operator FROM limits WHERE queue = ? AND name = ?"
_DECLARE = "INSERT INTO limits (queue, name, declared) VALUES (?, ?, ?)"
_LOAD = """
SELECT ready, active, owed, rate, rate_ms, owed_at_ms FROM gates
WHERE queue = ? AND name = ?
"""
_HEAD = """
SELECT -tier, number, lane FROM jobs WHERE queue = ? AND parked = ?
ORDER BY tier DESC, number LIMIT 1
"""
_STANDS = "SELECT 1 FROM strikes WHERE queue = ? AND id = ?"
_SAVE = """
INSERT INTO gates (queue, name, ready, active, owed, rate, rate_ms, owed_at_ms, due_ms, full_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET ready = excluded.ready, active = excluded.active, owed = excluded.owed,
  rate = excluded.rate, rate_ms = excluded.rate_ms, owed_at_ms = excluded.owed_at_ms,
  due_ms = excluded.due_ms, full_ms = excluded.full_ms
"""
_FORGET = "DELETE FROM gates WHERE queue = ? AND name = ?"
_ERASE = """
DELETE FROM gates WHERE queue = ?1
AND name IN (SELECT name FROM gates WHERE queue = ?1 ORDER BY name LIMIT ?2)
"""
_COUNT = "SELECT count(*) FROM gates WHERE queue = ?"
_FIRST_DUE = "SELECT min(due_ms) FROM gates WHERE queue = ? AND due_ms IS NOT NULL"
_IS_OPENING = "SELECT 1 FROM limits WHERE queue = ? AND opened IS NOT NULL LIMIT 1"

Standing = tuple[int, int]
"""Where a job stands in a line: its tier, negative, and its number; the least is the first."""


def erase(db: sqlite3.Connection, queue: int, *, limit: int) -> int:
    """Erase some gates of a queue in which there is no job; return how many are left."""
    db.execute(_ERASE, (queue, limit))
    [left] = db.execute(_COUNT, (queue,)).fetchone()
    return int(left)


def stands(db: sqlite3.Connection, queue: int, strike_id: str) -> bool:
    """Whether a strike stands, whose line has no room then."""
    return db.execute(_STANDS, (queue, strike_id)).fetchone() is not None


class GateState(msgspec.Struct):
    """One gate as a call sees it.

    Attributes:
        name: the limit's name, a tab and the key.
        is_window: whether those who are active have no place in it.
        terms: what holds, None without any.
        bucket: the tokens of its rate, by now.
        ready: how many jobs have a place and wait for a worker.
        active: how many have one and run.
        is_kept: whether there is a row of it.
        is_closed: whether it is a strike's line, and that stands: it has no room.
        looks: how many jobs of its line may be looked at for the places that came free.
        came: who has joined its line in this call, with their lanes: they may not be written yet.
        head: the first in its line and that one's lane; None: nobody is there.
        is_head_known: whether ``head`` is what the line is now.
    """

    name: str
    terms: Terms | None
    bucket: Bucket
    is_window: bool = False
    ready: int = 0
    active: int = 0
    is_kept: bool = False
    is_closed: bool = False
    looks: int = 0
    came: dict[Standing, str] = {}
    head: tuple[Standing, str] | None = None
    is_head_known: bool = False

    @property
    def is_full(self) -> bool:
        """Whether as many jobs have a place as its terms allow at once."""
        most = self.terms.concurrency if self.terms else 0
        return 0 < most <= self.ready + self.active

    @property
    def has_room(self) -> bool:
        """Whether one more job may be ready."""
        terms = self.terms
        if self.is_window:
            return self.ready < 1
        if terms is None:
            return not self.is_closed
        return not self.is_full and (not terms.rate or self.ready < self.bucket.tokens)

    @property
    def lets_start(self) -> bool:
        """Whether a job that is ready may start."""
        terms = self.terms
        if terms is None:
            return True
        if terms.concurrency and self.active >= terms.concurrency:
            return False
        return not terms.rate or self.bucket.tokens > 0

    def room_in_ms(self) -> int | None:
        """Return how long until time alone gives it room; None: it never does."""
        if self.has_room:
            return 0
        if self.terms is None or not self.terms.rate or self.is_full:
            return None
        return self.bucket.ms_until(self.ready + 1)


class Gates:
    """The gates that one call has to do with.

    Args:
        db: where the queue is.
        queue: its key.
        now_ms: the call's time.

    Attributes:
        turns_over: the gates of keys whose next turn is free, in the order in which that came.
        let_in: the numbers of jobs whose turn has begun since the caller set it to nothing.
    """

    __slots__ = ("_db", "_known", "_lacking", "_now_ms", "_queue", "_terms", "let_in", "turns_over")

    def __init__(self, db: sqlite3.Connection, queue: int, *, now_ms: int) -> None:
        self._db = db
        self._queue = queue
        self._now_ms = now_ms
        self._known: dict[str, GateState] = {}
        self._lacking: dict[str, list[GateState]] = {}
        self._terms: dict[str, Terms | None] = {}
        self.turns_over: list[str] = []
        self.let_in: set[int] = set()

    def named(self, said: str, *, lane: str, tier: int) -> str:
        """Return the gates of a new job of a lane and tier as they are stored: names, a line each.

        Terms that it brings are declared where the limit has none yet.
        """
        gates = read_gates(said)
        for gate in gates:
            if gate.terms is not None and self._terms_of(gate.name) is None:
                self._declare(gate.name, gate.terms)
        return "\n".join(f"{turns.limit_in(gate.name, lane, tier)}\t{gate.key}" for gate in gates)

    def gate(self, name: str) -> GateState:
        """Return one gate; what is changed of it is written at the end of the call."""
        gate = self._known.get(name)
        if gate is None:
            gate = self._known[name] = self._load(name)
            if gate.terms is None:
                self._lacking.setdefault(name.partition("\t")[0], []).append(gate)
        return gate

    def look_at(self, name: str) -> GateState:
        """Return one gate as it is now, which is not written."""
        return self._known.get(name) or self._load(name)

    def admit(self, names: str, place: Standing) -> str | None:
        """Take a place in each of a job's gates, or return that in whose line it has to wait."""
        gates = [self.gate(name) for name in names.split("\n")]
        for gate in gates:
            if not gate.has_room or self._has_before(gate, place):
                return gate.name
        for gate in gates:
            gate.ready += 1
        return None

    def start(self, names: str) -> str | None:
        """Let a ready job start, or return the first of its gates that does not let it."""
        gates = [self.gate(name) for name in names.split("\n")]
        for gate in gates:
            if not gate.lets_start:
                return gate.name
        for gate in gates:
            gate.ready -= 1
            if gate.is_window:
                self._note_turn(gate)
            else:
                gate.active += 1
                gate.bucket.take()
        return None

    def keep(self, names: str) -> None:
        """Note that an active job is ready again: in its places, or beside who has its turn."""
        for name in names.split("\n"):
            gate = self.gate(name)
            gate.active -= not gate.is_window
            gate.ready += 1

    def give_back(self, names: str, state: str) -> None:
        """Take the places of a job, which was ready or active, from it."""
        for name in names.split("\n"):
            if state == "active" and is_window(name):
                continue
            gate = self.gate(name)
            if state == "active":
                gate.active -= 1
            else:
                gate.ready -= 1
            if gate.is_window:
                self._note_turn(gate)
            else:
                gate.looks += GATE_LOOKS

    def join(self, name: str, place: Standing, lane: str) -> None:
        """Note that a job waits in a gate's line."""
        gate = self.gate(name)
        gate.came[place] = lane
        gate.is_head_known = False

    def part(self, name: str, place: Standing) -> None:
        """Note that a job has left a gate's line."""
        gate = self.gate(name)
        gate.came.pop(place, None)
        gate.is_head_known = False

    def head(self, gate: GateState) -> tuple[Standing, str] | None:
        """Return who is the first in a gate's line, and that one's lane."""
        if not gate.is_head_known:
            heads = list(gate.came.items())
            row = self._db.execute(_HEAD, (self._queue, gate.name)).fetchone()
            if row is not None:
                heads.append(((row[0], row[1]), row[2]))
            gate.head = min(heads, default=None)
            gate.is_head_known = True
        return gate.head

    def freed(self) -> list[GateState]:
        """Return the gates in which places came free, and whose lines were not looked at since."""
        return [gate for gate in self._known.values() if gate.looks]

    def write(self, due_ms: int | None) -> tuple[int | None, str]:
        """Write what the call has changed of gates, and begin anew.

        Args:
            due_ms: when the first gate was due before.

        Returns:
            When the first gate is due now, None without one, and the lane of the job that waits for
            that if its gate is among those written, else "".
        """
        if not self._known:
            return due_ms, ""
        lanes: dict[int, str] = {}
        rows = []
        for gate in self._known.values():
            room_in_ms = gate.room_in_ms()
            # Who waits is of no account where only an end can give room.
            head = None if room_in_ms is None else self.head(gate)
            due_ms = None if room_in_ms is None or head is None else self._now_ms + room_in_ms
            if head is not None and due_ms is not None:
                lanes.setdefault(due_ms, head[1])
            if row := self._row(gate, due_ms):
                rows.append(row)
            elif gate.is_kept:
                self._db.execute(_FORGET, (self._queue, gate.name))
        self._db.executemany(_SAVE, rows)
        self._known, self._lacking = {}, {}
        [first_ms] = self._db.execute(_FIRST_DUE, (self._queue,)).fetchone()
        if self._db.execute(_IS_OPENING, (self._queue,)).fetchone() is not None:
            first_ms = self._now_ms if first_ms is None else min(first_ms, self._now_ms)
        return first_ms, "" if first_ms is None else lanes.get(first_ms, "")

    def _terms_of(self, limit: str) -> Terms | None:
        """Return the terms of a limit that hold now."""
        if limit not in self._terms and is_window(limit):
            self._terms[limit] = None
        elif limit not in self._terms:
            row = self._db.execute(_TERMS, (self._queue, limit)).fetchone()
            self._terms[limit] = None if row is None else read_terms(row[1] or row[0])
        return self._terms[limit]

    def _note_turn(self, gate: GateState) -> None:
        gate.looks += GATE_LOOKS
        if gate.ready == 0:
            self.turns_over.append(gate.name)

    def _declare(self, limit: str, terms: Terms) -> None:
        self._db.execute(_DECLARE, (self._queue, limit, terms.text))
        self._terms[limit] = terms
        for gate in self._lacking.get(limit, ()):
            gate.terms, gate.bucket = terms, paid(gate.bucket, 0, terms)

    def _load(self, name: str) -> GateState:
        limit, tab, _ = name.partition("\t")
        terms = self._terms_of(limit) if tab else None
        row = self._db.execute(_LOAD, (self._queue, name)).fetchone()
        is_closed = not tab and stands(self._db, self._queue, limit)
        if row is None:
            return GateState(
                name, terms, paid(Bucket(), 0, terms), is_window(name), is_closed=is_closed
            )
        ready, active, owed, rate, rate_ms, owed_at_ms = row
        bucket = paid(Bucket(owed, rate, rate_ms), self._now_ms - owed_at_ms, terms)
        return GateState(
            name, terms, bucket, is_window(name), ready, active, is_kept=True, is_closed=is_closed
        )

    def _has_before(self, gate: GateState, place: Standing) -> bool:
        head = self.head(gate)
        return head is not None and head[0] < place

    def _row(self, gate: GateState, due_ms: int | None) -> tuple[Any, ...] | None:
        """Return what is kept of a gate, None for one that may be forgotten."""
        bucket = gate.bucket
        is_idle = not (gate.ready or gate.active)
        if is_idle and due_ms is None and not bucket.owed:
            return None
        full_in_ms = bucket.ms_until(bucket.burst) if is_idle and bucket.rate else None
        full_ms = None if full_in_ms is None else self._now_ms + full_in_ms
        rate = (bucket.owed, bucket.rate, bucket.rate_ms, self._now_ms)
        return self._queue, gate.name, gate.ready, gate.active, *rate, due_ms, full_ms

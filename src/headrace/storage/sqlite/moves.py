"""The places of a job, and every way from one to another.

Nothing else gives a job its place, takes it away or changes a count of jobs. Verbs decide; a move
leaves the old place, enters the new one, counts, notes the event and wakes who consumes there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import msgspec

from headrace.storage.sqlite import parking, turns
from headrace.storage.sqlite.engine.rows import json_list
from headrace.storage.sqlite.intake import NewJob
from headrace.storage.sqlite.record import DELAYED, Record
from headrace.storage.sqlite.unit import UnitOfWork

_PLACES = ("seq", "due_ms", "owner", "purge_at_ms")
"""Each place has a column, which is set while a job is there: ready, delayed, active, ended."""


def _enter(
    column: str, values: str, *, out_of: Sequence[str] = _PLACES, where: str = "key = ?"
) -> str:
    """Return an update that takes jobs to the place of a column, out of those that they may be in.

    Each further place costs time, since its index is looked at.
    """
    left = "".join(f"{other} = NULL, " for other in out_of if other != column)
    return f"UPDATE jobs SET {column} = ?, {left}changed_ms = ?, {values} WHERE {where}"  # noqa: S608


_READY = _enter("seq", "state = 'queued', failures = ?, stalls = ?")
_ANEW = _enter(
    "seq",
    """state = 'queued', failures = 0, stalls = 0, expires_at_ms = 0, put_back = NULL,
  reason = '', error = '', cancel = 0, channels = NULL, run_ms = 0, joined = 0""",
)
_DELAYED = _enter("due_ms", "state = ?, failures = ?, run_ms = ?, put_back = ?")
_ENDED = _enter(
    "purge_at_ms",
    """state = ?, run_ms = ?, result = ?, result_purge_at_ms = ?, reason = ?, error = ?,
  failures = ?, stalls = ?""",
)
_BLOCKED = _enter("parked", "number = ?, state = 'blocked', failures = ?, stalls = ?")
_ACTIVE = _enter(
    "owner",
    "state = 'active', epoch = epoch + 1, nonce = ?",
    out_of=["seq"],
    where="key IN (SELECT value FROM json_each(?))",
)
_BEHIND = "UPDATE jobs SET seq = ? WHERE key = ?"


ADMITTED = "admitted"
"""What the event says of a job that has left the line of a gate for its place."""


class Ready(msgspec.Struct, frozen=True):
    """Waits for a worker, in the order of ``seq``, which the unit of work gave out."""

    state: ClassVar[str] = "queued"
    seq: int

    def enter(self, unit: UnitOfWork, record: Record) -> None:
        """Take the job in, with what it was charged with."""
        unit.enter("queued")
        values = (self.seq, unit.now_ms, record.failures, record.stalls, record.key)
        unit.write(_READY, values)
        unit.wakes.lane(record.lane)


class Anew(msgspec.Struct, frozen=True):
    """Waits for a worker as if it had just come: a dead letter that is queued again."""

    state: ClassVar[str] = "queued"
    seq: int

    def enter(self, unit: UnitOfWork, record: Record) -> None:
        """Take the job in, with nothing that it was charged with."""
        unit.enter("queued")
        unit.write(_ANEW, (self.seq, unit.now_ms, record.key))
        unit.wakes.lane(record.lane)


class Blocked(msgspec.Struct, frozen=True):
    """Waits in the line of a gate, in the order of ``number``: the place it had come to."""

    state: ClassVar[str] = "blocked"
    line: str
    number: int

    def enter(self, unit: UnitOfWork, record: Record) -> None:
        """Take the job in, with what it was charged with."""
        unit.enter("blocked")
        unit.gates.join(self.line, (-record.tier, self.number), record.lane)
        values = (record.failures, record.stalls, record.key)
        unit.write(_BLOCKED, (self.line, unit.now_ms, self.number, *values))


class Delayed(msgspec.Struct, frozen=True):
    """Waits for its time, ``scheduled`` or ``retrying``."""

    state: str
    due_ms: int
    run_ms: int = 0

    def enter(self, unit: UnitOfWork, record: Record) -> None:
        """Take the job in, with what it was charged with."""
        unit.enter(self.state)
        unit.write(
            _DELAYED,
            (
                *(self.due_ms, unit.now_ms, self.state, record.failures, self.run_ms),
                *(record.put_back, record.key),
            ),
        )
        unit.wakes.delayed(self.due_ms, record.lane)


class Ended(msgspec.Struct, frozen=True):
    """Is over, and kept for ``keep_ms``; 0: not at all."""

    state: str
    keep_ms: int
    run_ms: int = 0
    result: bytes | None = None
    result_purge_at_ms: int | None = None
    reason: str = ""
    error: str = ""

    def enter(self, unit: UnitOfWork, record: Record) -> None:
        """Keep the record, or erase it."""
        if not self.keep_ms:
            ERASED.enter(unit, record)
            return
        unit.enter(self.state)
        now_ms = unit.now_ms
        unit.write(
            _ENDED,
            (
                now_ms + self.keep_ms,
                now_ms,
                self.state,
                self.run_ms,
                self.result,
                self.result_purge_at_ms,
                self.reason,
                self.error,
                record.failures,
                record.stalls,
                record.key,
            ),
        )


class Erased(msgspec.Struct, frozen=True):
    """Is nowhere any more."""

    state: ClassVar[str] = ""

    def enter(self, unit: UnitOfWork, record: Record) -> None:
        """Erase the record and what lies beside it."""
        record.is_erased = True
        unit.erase(record.key)


ERASED = Erased()


def enter(unit: UnitOfWork, new: NewJob, due_ms: int, *, detail: str = "") -> None:
    """Give a new job its first place: it waits for a worker, or for its time if that is to come.

    ``detail`` is what the event says of one that waits for a worker.
    """
    if due_ms > unit.now_ms:
        new.state, new.due_ms = "scheduled", due_ms
        unit.wakes.delayed(due_ms, new.lane)
    else:
        new.state, new.seq = "queued", unit.next_tail()
        if new.gates and (line := parking.line_of_new(unit, new)):
            new.state, new.seq, new.parked, new.number = "blocked", None, line, new.seq
            detail = parking.shown(line)
        else:
            unit.wakes.lane(new.lane)
    unit.enter(new.state)
    detail = detail if new.due_ms is None else str(new.due_ms)
    unit.events.add(new.state, new.id, new.task, detail=detail)


def move(
    unit: UnitOfWork,
    record: Record,
    place: Ready | Anew | Blocked | Delayed | Ended | Erased,
    event: str = "",
    *,
    worker: str = "",
    run_ms: int = 0,
    detail: str = "",
) -> None:
    """Take a job from where it is to another place; write what the record says of it now.

    Args:
        unit: the call.
        record: the job, which is changed.
        place: where to.
        event: the kind of the event that tells of it, "" for none.
        worker: the incarnation that the event names.
        run_ms: how long the event says that it ran.
        detail: of the event.
    """
    if record.gates_asked or record.gates or record.state == "blocked":
        number = place.seq if isinstance(place, Ready | Anew) else None
        line = parking.line_of(unit, record, number)
        if line is not None and number is not None:
            place = Blocked(line, number)
            if event == "queued":
                event = "" if detail == ADMITTED else "blocked"
                detail = parking.shown(line)
        elif detail == ADMITTED and turns.are_among(record.gates):
            place = Ready(unit.next_tail())  # its turn begins now
            unit.gates.let_in.add(place.seq)
    unit.leave(record.state)
    if record.state in DELAYED:
        unit.wakes.forget_due()
    elif record.state == "active" and unit.settings.max_active:
        unit.wakes.all()
    record.state = place.state or record.state
    place.enter(unit, record)
    if event:
        unit.events.add(
            event,
            record.id,
            record.task,
            start=record.epoch,
            worker=worker,
            run_ms=run_ms,
            detail=detail,
        )


def park(unit: UnitOfWork, record: Record, line: str, number: int) -> None:
    """Take a job to the line of a gate or strike that does not let it start, or run."""
    move(unit, record, Blocked(line, number), "blocked", detail=parking.shown(line))


def start(unit: UnitOfWork, keys: Sequence[int], *, owner: int, nonce: str) -> None:
    """Make ready jobs active: an incarnation has claimed them."""
    unit.db.execute(_ACTIVE, (owner, unit.now_ms, nonce, json_list(keys)))
    unit.leave("queued", len(keys))
    unit.enter("active", len(keys))


def block(unit: UnitOfWork) -> None:
    """Count one that is blocked by the active job of its id, and has no place."""
    unit.enter("blocked")


def unblock(unit: UnitOfWork, record: Record) -> None:
    """Erase one that is blocked."""
    unit.leave(record.state)
    unit.erase(record.key)


def pass_over(unit: UnitOfWork, key: int) -> None:
    """Put a ready job behind all others, where it holds nobody up."""
    unit.db.execute(_BEHIND, (unit.next_tail(), key))


def recount(unit: UnitOfWork, found: Mapping[str, int]) -> int:
    """Bring counts back to the jobs that there are in each state.

    Returns:
        How many counts were wrong.
    """
    return unit.recount(found)

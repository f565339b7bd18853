"""The repair's walk: what is derived from the rows of jobs comes back to these, a piece a call.

First goes on what has lost that which it waits for. Then all jobs are counted, their gates are
brought back to that, and what lies beside no job is erased.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from headrace.storage.limits import BATCH_LIMIT, RECOUNT_LOOKS
from headrace.storage.sqlite import attempts, history, lines, moves, recounts, strikes, successors
from headrace.storage.sqlite.record import Span
from headrace.storage.sqlite.unit import UnitOfWork
from headrace.storage.values import Repaired

_ROWS, _COUNTS, _GATES, _BESIDE, _END = range(5)
"""The stages of a walk."""

_MARK = "\t"
"""Before a cursor: no gate's name begins so."""

_SPAN = """
SELECT coalesce(max(id), ''), count(*) FROM (
  SELECT id FROM jobs INDEXED BY jobs_id WHERE queue = ? AND id > ? ORDER BY id LIMIT ?
)
"""
_STATES = """
SELECT state, count(*) FROM jobs INDEXED BY jobs_id WHERE queue = ? AND id > ? AND id <= ?
GROUP BY state
"""


class Walk(msgspec.Struct, array_like=True):
    """Where a walk goes on, and what it knows.

    Attributes:
        stage: what it is at.
        place: the last that it has looked at there, "" for none.
        began_ms: when it began to count.
        seen: what changes with every move of a job, as it was then.
        states: how many jobs it has counted in each state.
    """

    stage: int = _ROWS
    place: str = ""
    began_ms: int = 0
    seen: list[int] = []
    states: dict[str, int] = {}

    def enter(self, stage: int) -> None:
        """Begin with a stage."""
        self.stage, self.place = stage, ""

    def cursor(self) -> str:
        """Return what brings another call here."""
        return _MARK + msgspec.json.encode(self).decode()


class _Call(msgspec.Struct):
    """How many places one call may look at yet, what it has put right, and if it saw all jobs."""

    looks: int = BATCH_LIMIT
    mended: int = 0
    is_whole: bool = False


def is_at(cursor: str) -> bool:
    """Whether a cursor is one of a walk."""
    return cursor.startswith(_MARK)


def go_on(unit: UnitOfWork, cursor: str) -> Repaired:
    """Go on from a cursor, "" for the beginning."""
    walk = msgspec.json.decode(cursor.removeprefix(_MARK), type=Walk) if cursor else Walk()
    if _has_tally(walk) and not recounts.take_up(unit, cursor):
        walk.enter(_BESIDE)
    if unit.now_ms < walk.began_ms:
        walk.began_ms = 0  # the clock was set back: no time tells what has changed since
    call = _Call()
    while walk.stage != _END and call.looks > 0:
        _STAGES[walk.stage](unit, walk, call)
    lines.close(unit)
    if walk.stage == _END:
        return Repaired("", call.mended)
    cursor = walk.cursor()
    if _has_tally(walk):
        recounts.note(unit, cursor)
    return Repaired(cursor, call.mended)


def _has_tally(walk: Walk) -> bool:
    return walk.stage == _GATES or (walk.stage == _COUNTS and walk.place != "")


def _span(unit: UnitOfWork, behind: str, looks: int) -> tuple[Span, int]:
    """Return up to so many ids behind one, and how many rows these have at least."""
    last, n = unit.db.execute(_SPAN, (unit.key, behind, looks)).fetchone()
    return (behind, last), n


def _fingerprint(unit: UnitOfWork) -> list[int]:
    return [unit.told, unit.tail, *unit.counts.values()]


def _mend_rows(unit: UnitOfWork, walk: Walk, call: _Call) -> None:
    """Let those jobs go on that have lost what they wait for, or who runs them."""
    span, n = _span(unit, walk.place, call.looks)
    for mend in (attempts.mend, successors.mend, lines.mend):
        call.mended += mend(unit, span)
        unit.flush()
    walk.place = span[1]
    if n < call.looks:
        walk.enter(_COUNTS)
    call.looks -= n


def _count_jobs(unit: UnitOfWork, walk: Walk, call: _Call) -> None:
    """Count jobs by their states, and tally their places."""
    is_first, size = not walk.place, min(call.looks, RECOUNT_LOOKS)
    span, n = _span(unit, walk.place, size)
    is_last = n < size
    if is_first:
        if call.mended and not is_last:
            call.looks = 0  # what it has put right may move jobs as it closes
            return
        call.mended += strikes.mend(unit)
        walk.seen, walk.began_ms = _fingerprint(unit), unit.now_ms
        recounts.begin(unit)
    walk.states = dict(Counter(walk.states) + Counter(_states(unit, span)))
    recounts.add(unit, span)
    walk.place = span[1]
    if is_last:
        call.is_whole = is_first
        if is_first or walk.seen == _fingerprint(unit):
            call.mended += moves.recount(unit, walk.states)
            walk.seen = _fingerprint(unit)
        walk.enter(_GATES)
    call.looks -= n


def _states(unit: UnitOfWork, span: Span) -> dict[str, int]:
    return dict(unit.db.execute(_STATES, (unit.key, *span)).fetchall())


def _bring_gates_back(unit: UnitOfWork, walk: Walk, call: _Call) -> None:
    """Bring gates back to their tallies, where these hold."""
    is_still = call.is_whole or walk.seen == _fingerprint(unit)

    def may_trust(placed_ms: int | None) -> bool:
        return is_still or (placed_ms is not None and placed_ms < walk.began_ms)

    size = min(call.looks, RECOUNT_LOOKS)
    names, wrong = recounts.bring_back(unit, walk.place, size, may_trust)
    call.mended += wrong
    if len(names) < size:
        recounts.end(unit)
        walk.enter(_BESIDE)
    else:
        walk.place = names[-1]
    call.looks -= 2 * len(names)  # a gate and its tally


def _erase_orphans(unit: UnitOfWork, walk: Walk, call: _Call) -> None:
    """Erase what lies beside no job."""
    table, _, behind = (walk.place or history.BESIDE[0]).partition(" ")
    last, n, erased = history.erase_orphans(unit.db, table, int(behind or 0), call.looks)
    call.mended += erased
    if n >= call.looks:
        walk.place = f"{table} {last}"
    elif table != history.BESIDE[-1]:
        walk.place = history.BESIDE[history.BESIDE.index(table) + 1]
    else:
        walk.enter(_END)
    call.looks -= n


_STAGES = (_mend_rows, _count_jobs, _bring_gates_back, _erase_orphans)

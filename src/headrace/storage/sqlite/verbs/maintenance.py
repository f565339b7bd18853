"""What keeps a queue in order when others died or rows were lost: the verbs of `Maintenance`."""

from __future__ import annotations

from headrace.job import ErrorInfo
from headrace.storage.sqlite import moves
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.incarnation import count_owned, owned
from headrace.storage.sqlite.record import load, pile_of
from headrace.storage.sqlite.unit import COUNTS, View, find_view
from headrace.storage.sqlite.verbs.enqueue import forget_calls
from headrace.storage.values import Beat

REAPED_A_CALL = 200
PRUNED_A_CALL = 200
MESSAGE_TTL_MS = 60_000

_BEATS = "SELECT incarnation, beat, lease_ms, is_condemned FROM workers WHERE queue = ?"
_OLD_LETTERS = """
SELECT key, state FROM jobs WHERE queue = ? AND state = 'failed' AND dies IS NOT NULL AND at <= ?
LIMIT ?
"""
_DEAD = "SELECT key, state FROM jobs WHERE queue = ? AND dies <= ? LIMIT ?"


_STATES = "SELECT state, count(*) FROM jobs WHERE queue = ? GROUP BY state"
_ORPHANS = """
DELETE FROM {table} WHERE job IN (
  SELECT {table}.job FROM {table} LEFT JOIN jobs ON jobs.key = {table}.job WHERE jobs.key IS NULL
)
"""
_LOST_OWNERS = """
SELECT id FROM jobs WHERE queue = ? AND state = 'active'
  AND (owner IS NULL OR owner NOT IN (SELECT key FROM workers WHERE queue = ?))
"""


def beats(step: Step, name: QueueName) -> dict[str, Beat]:
    """Return every listed incarnation."""
    view = find_view(step, name)
    rows = step.db.execute(_BEATS, (view.key,)).fetchall() if view else []
    return {
        incarnation: Beat(
            count=-1 if is_condemned else beat,
            lease_ms=lease_ms,
            is_condemned=bool(is_condemned),
        )
        for incarnation, beat, lease_ms, is_condemned in rows
    }


def reap(step: Step, name: QueueName, incarnation: str, seen: int, error: ErrorInfo) -> int | None:
    """Condemn an incarnation whose beat has not moved, and take its jobs back."""
    view = find_view(step, name)
    if view is None:
        return None
    sql = "SELECT key, beat, is_condemned FROM workers WHERE queue = ? AND incarnation = ?"
    row = step.db.execute(sql, (view.key, incarnation)).fetchone()
    if row is None or (not row[2] and row[1] != seen):
        return None
    owner = row[0]
    # Condemned for good: every later call of it answers gone, and its numbers end with it.
    sql = """
UPDATE workers SET is_condemned = 1, claim = 0, settle = 0, settled = '', last_chance = NULL,
  info = x'', channel = ''
WHERE key = ?
"""
    step.db.execute(sql, (owner,))
    for record in owned(view, owner, REAPED_A_CALL):
        moves.stall(view, record, incarnation, error)
    view.wake_all()
    view.close()
    return count_owned(view, owner)


def forget(step: Step, name: QueueName, incarnation: str) -> bool:
    """Take a condemned incarnation off the list, unless something of it is left."""
    view = find_view(step, name)
    if view is None:
        return True
    sql = "SELECT key, is_condemned FROM workers WHERE queue = ? AND incarnation = ?"
    row = step.db.execute(sql, (view.key, incarnation)).fetchone()
    if row is None:
        return True
    if not row[1] or count_owned(view, row[0]):
        return False
    step.db.execute("DELETE FROM workers WHERE key = ?", (row[0],))
    return True


def prune(step: Step, name: QueueName) -> str:
    """Delete a bounded piece of what has ended; return a cursor while there may be more."""
    sql = "DELETE FROM messages WHERE at <= ?"
    step.db.execute(sql, (step.now - MESSAGE_TTL_MS,))
    view = find_view(step, name)
    if view is None:
        return ""
    forget_calls(view)
    oldest = view.now - view.settings.dead_letter_ttl_ms
    letters = step.db.execute(_OLD_LETTERS, (view.key, oldest, PRUNED_A_CALL)).fetchall()
    _erase(view, letters)
    dead = step.db.execute(_DEAD, (view.key, view.now, PRUNED_A_CALL - len(letters))).fetchall()
    _erase(view, dead)
    view.close()
    return "more" if len(letters) + len(dead) >= PRUNED_A_CALL else ""


def _erase(view: View, rows: list[tuple[int, str]]) -> None:
    for key, state in rows:
        view.count(pile_of(state), -1)
        view.erase(key)
    view.flush()


def recount(step: Step, name: QueueName) -> int:
    """Bring counts back to the rows that are there; return how many things were put right."""
    view = find_view(step, name)
    if view is None:
        return 0
    ids = [row[0] for row in step.db.execute(_LOST_OWNERS, (view.key, view.key)).fetchall()]
    lost = load(view, ids) if ids else {}
    for record in lost.values():
        moves.send_back(view, record)
    view.flush()
    found = dict.fromkeys(COUNTS, 0)
    for state, n in step.db.execute(_STATES, (view.key,)).fetchall():
        found[pile_of(state)] += n
    mended = len(lost) + sum(view.counts[pile] != n for pile, n in found.items())
    view.counts.update(found)
    view.close()
    for table in ("payloads", "errors", "outputs"):
        mended += step.db.execute(_ORPHANS.format(table=table)).rowcount
    return mended

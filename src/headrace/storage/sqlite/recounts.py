"""The recount of gates: how many places the jobs that are there have in each.

Of many jobs each call tallies some while others move. So at the end a gate is brought back to its
tally only if nobody has taken a place in it or left one since the recount began. The tally is kept
by the connection: another process that is given the cursor finds none, and changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from headrace.storage.limits import GATE_LOOKS
from headrace.storage.sqlite.record import Span
from headrace.storage.sqlite.unit import UnitOfWork

_MAKE = (
    """
CREATE TEMP TABLE IF NOT EXISTS tally (
  name TEXT PRIMARY KEY, ready INTEGER NOT NULL, active INTEGER NOT NULL
) WITHOUT ROWID
""",
    "CREATE TEMP TABLE IF NOT EXISTS walk (queue INTEGER NOT NULL, cursor TEXT NOT NULL)",
)
_PLACES = """
SELECT state, gates, parked, count(*) FROM jobs INDEXED BY jobs_id
WHERE queue = ? AND id > ? AND id <= ? AND is_next = 0
  AND (gates IS NOT NULL OR parked IS NOT NULL)
GROUP BY state, gates, parked
"""
_ADD = """
INSERT INTO temp.tally (name, ready, active) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET ready = ready + excluded.ready, active = active + excluded.active
"""
_PAGE = """
SELECT names.name, coalesce(tally.ready, 0), coalesce(tally.active, 0), owed_at_ms, due_ms
FROM (
  SELECT name FROM (SELECT name FROM temp.tally WHERE name > ?2 ORDER BY name LIMIT ?3)
  UNION
  SELECT name FROM (
    SELECT name FROM gates WHERE queue = ?1 AND name > ?2 ORDER BY name LIMIT ?3
  )
  ORDER BY name LIMIT ?3
) AS names
LEFT JOIN temp.tally ON tally.name = names.name
LEFT JOIN gates ON gates.queue = ?1 AND gates.name = names.name
ORDER BY names.name
"""


def begin(unit: UnitOfWork) -> None:
    """Begin a tally; whoever was at another one in this process finds it gone."""
    for sql in _MAKE:
        unit.db.execute(sql)
    end(unit)


def end(unit: UnitOfWork) -> None:
    """Forget the tally."""
    unit.db.execute("DELETE FROM temp.tally")
    unit.db.execute("DELETE FROM temp.walk")


def note(unit: UnitOfWork, cursor: str) -> None:
    """Note the cursor of the one call that goes on with the tally."""
    unit.db.execute("INSERT INTO temp.walk (queue, cursor) VALUES (?, ?)", (unit.key, cursor))


def take_up(unit: UnitOfWork, cursor: str) -> bool:
    """Whether a call with this cursor goes on: not one that is repeated, or whose tally is gone."""
    for sql in _MAKE:
        unit.db.execute(sql)
    sql = "DELETE FROM temp.walk WHERE queue = ? AND cursor = ?"
    return unit.db.execute(sql, (unit.key, cursor)).rowcount > 0


def add(unit: UnitOfWork, span: Span) -> None:
    """Tally the places of some jobs, and the lines in which any of them waits."""
    places: Counter[tuple[str, str]] = Counter()
    lines = set()
    for state, gates, parked, n in unit.db.execute(_PLACES, (unit.key, *span)).fetchall():
        if parked is not None:
            lines.add(parked)
        if state in ("queued", "active"):
            for name in (gates or "").split("\n"):
                places[name, state] += n
    names = {name for name, _ in places if name} | lines
    found = [(name, places[name, "queued"], places[name, "active"]) for name in names]
    unit.db.executemany(_ADD, found)


def bring_back(
    unit: UnitOfWork, behind: str, looks: int, may_trust: Callable[[int | None], bool]
) -> tuple[list[str], int]:
    """Bring some gates back to their tallies, and see that their lines are opened when they can be.

    Args:
        unit: the call.
        behind: the last gate that was looked at before, "" for none.
        looks: how many to look at.
        may_trust: whether a tally holds of a gate whose places have changed last at that time,
            None: nothing is kept of it.

    Returns:
        Their names, and how many were wrong.
    """
    wrong = 0
    rows = unit.db.execute(_PAGE, (unit.key, behind, looks)).fetchall()
    for name, ready, active, placed_ms, due_ms in rows:
        gate = unit.gates.look_at(name)
        counts = (ready, 0 if gate.is_window else active)
        if (gate.ready, gate.active) != counts and may_trust(placed_ms):
            gate = unit.gates.gate(name)
            gate.ready, gate.active = counts
            gate.looks = GATE_LOOKS
            wrong += 1
        elif due_ms is None and gate.room_in_ms() is not None and unit.gates.head(gate):
            unit.gates.gate(name).looks = GATE_LOOKS
    return [row[0] for row in rows], wrong

"""The last instant of each schedule that was fired in a queue."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headrace.storage.limits import FIRED_TTL_MS, PRUNED_A_CALL
from headrace.storage.sqlite.engine.rows import json_list
from headrace.storage.sqlite.engine.step import Step
from headrace.storage.sqlite.unit import UnitOfWork

_LAST = """
SELECT schedule, instant_ms FROM fired
WHERE queue = ? AND schedule IN (SELECT value FROM json_each(?))
"""
_KEEP = """
INSERT INTO fired (queue, schedule, instant_ms, purge_at_ms) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET instant_ms = excluded.instant_ms, purge_at_ms = excluded.purge_at_ms
"""
_FORGET = "DELETE FROM fired WHERE key IN (SELECT key FROM fired WHERE purge_at_ms <= ? LIMIT ?)"


def last_instants(unit: UnitOfWork, schedule_ids: Collection[str]) -> dict[str, int]:
    """Return the last instants of those schedules that were fired in the queue."""
    return dict(unit.db.execute(_LAST, (unit.key, json_list(schedule_ids))).fetchall())


def keep(unit: UnitOfWork, instants: Mapping[str, int]) -> None:
    """Keep the last instant of each of some schedules.

    It is kept for as long after it was fired as after it was due: an occurrence that is caught up
    with is of long ago.
    """
    rows = [
        (unit.key, schedule_id, instant_ms, max(instant_ms, unit.now_ms) + FIRED_TTL_MS)
        for schedule_id, instant_ms in instants.items()
    ]
    unit.db.executemany(_KEEP, rows)


def forget(step: Step) -> None:
    """Forget some of those whose time is over, whosever they are."""
    step.db.execute(_FORGET, (step.now_ms, PRUNED_A_CALL))

"""Who has places in gates: a gate itself only counts them.

They are looked for among the jobs that run or are ready, as far as the bound goes.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.job import JobRecord
from headrace.storage.limits import HOLDERS_LIMIT, HOLDERS_LOOKS
from headrace.storage.sqlite.gates import GateState
from headrace.storage.sqlite.unit import UnitOfWork
from headrace.storage.sqlite.wake import ready_lanes

# Incarnation by incarnation: in another order all that run would be read.
_ACTIVE = """
SELECT jobs.id, jobs.gates FROM incarnations CROSS JOIN jobs ON jobs.owner = incarnations.key
WHERE incarnations.queue = ? LIMIT ?
"""
_ITS_LINE = """
SELECT id, gates FROM jobs WHERE queue = ? AND lane = ? AND tier = ? AND seq IS NOT NULL
ORDER BY seq LIMIT ?
"""
_OTHER_LINES = """
SELECT id, gates FROM jobs WHERE queue = ?1 AND lane = ?2 AND seq IS NOT NULL
AND NOT (lane = ?3 AND tier = ?4) ORDER BY tier DESC, seq LIMIT ?5
"""


def find(unit: UnitOfWork, record: JobRecord, gates: list[GateState]) -> dict[str, list[str]]:
    """Return the ids of jobs that have a place in each of a job's gates, those that run first."""
    found: dict[str, list[str]] = {gate.name: [] for gate in gates}
    active = _Search(found, {gate.name: gate.active for gate in gates})
    if not active.is_over:
        active.look_at(unit.db.execute(_ACTIVE, (unit.key, active.looks)))
    ready = _Search(found, {gate.name: gate.ready for gate in gates})
    if not ready.is_over:
        _look_at_ready(unit, record, ready)
    return found


class _Search:
    """Looks for jobs that have places in gates.

    Args:
        found: the ids that are found, by gate.
        counts: how many jobs there are, by gate.
    """

    def __init__(self, found: dict[str, list[str]], counts: dict[str, int]) -> None:
        self._found = found
        self._missing = {
            name: min(HOLDERS_LIMIT - len(found[name]), count) for name, count in counts.items()
        }
        self.looks = HOLDERS_LOOKS

    @property
    def is_over(self) -> bool:
        """Whether all are found, or as many were looked at as may be."""
        return self.looks == 0 or not any(self._missing.values())

    def look_at(self, rows: Iterable[tuple[str, str | None]]) -> None:
        """Look at jobs, by their ids and gates."""
        for job_id, names in rows:
            if self.is_over:
                return
            self.looks -= 1
            for name in names.split("\n") if names else ():
                if self._missing.get(name):
                    self._found[name].append(job_id)
                    self._missing[name] -= 1


def _look_at_ready(unit: UnitOfWork, record: JobRecord, search: _Search) -> None:
    """Look at the line of a job, then at all others."""
    line = (record.lane, record.priority)
    search.look_at(unit.db.execute(_ITS_LINE, (unit.key, *line, search.looks)))
    for lane in () if search.is_over else ready_lanes(unit.db, unit.key):
        search.look_at(unit.db.execute(_OTHER_LINES, (unit.key, lane, *line, search.looks)))

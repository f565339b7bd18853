"""Keys that callers choose, apart from ids: which job came first with each."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.job import EnqueueOutcome, FirstUse
from headrace.request import JobRequest
from headrace.storage.limits import PRUNED_A_CALL
from headrace.storage.sqlite.engine.rows import json_list
from headrace.storage.sqlite.unit import UnitOfWork

_KNOWN = """
SELECT name, job, coalesce(state = 'completed' AND jobs.purge_at_ms > ?1, 0) FROM idempotency
LEFT JOIN jobs ON jobs.queue = idempotency.queue AND jobs.id = job AND is_next = 0
WHERE idempotency.queue = ?2 AND name IN (SELECT value FROM json_each(?3))
  AND idempotency.purge_at_ms > ?1
"""
_NOTE = """
INSERT INTO idempotency (queue, name, job, purge_at_ms) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET job = excluded.job, purge_at_ms = excluded.purge_at_ms
"""
_FORGET = """
DELETE FROM idempotency
WHERE key IN (SELECT key FROM idempotency WHERE queue = ? AND purge_at_ms <= ? LIMIT ?)
"""
_CHANGES_NOTHING = (EnqueueOutcome.DUPLICATE, EnqueueOutcome.COMPLETED)


class Firsts:
    """The jobs that came first with the keys of one call's jobs.

    Args:
        unit: the call.
        jobs: those that have a key.
    """

    def __init__(self, unit: UnitOfWork, jobs: Sequence[JobRequest]) -> None:
        self._unit = unit
        self._new: list[tuple[int, str, str, int]] = []
        self._known: dict[str, FirstUse] = {}
        if jobs:
            names = json_list(job.idempotency_key for job in jobs)
            for name, job_id, is_completed in unit.db.execute(
                _KNOWN, (unit.now_ms, unit.key, names)
            ).fetchall():
                outcome = EnqueueOutcome.COMPLETED if is_completed else EnqueueOutcome.DUPLICATE
                self._known[name] = FirstUse(outcome, job_id)

    def of(self, job: JobRequest) -> FirstUse | None:
        """Return the first job with the key of this one, None if that is the first or has none."""
        return self._known.get(job.idempotency_key)

    def note(self, job: JobRequest, outcome: EnqueueOutcome) -> None:
        """Note what came of a job: the first with its key, if it has one and took effect."""
        name = job.idempotency_key
        if name and outcome not in _CHANGES_NOTHING:
            self._known[name] = FirstUse(EnqueueOutcome.DUPLICATE, job.id)
            purge_at_ms = self._unit.now_ms + job.idempotency_ttl_ms
            self._new.append((self._unit.key, name, job.id, purge_at_ms))

    def write(self) -> None:
        """Write the keys that are new."""
        if self._new:
            self._unit.db.executemany(_NOTE, self._new)


def forget(unit: UnitOfWork) -> int:
    """Forget some of the keys whose time is over; return how many."""
    return unit.db.execute(_FORGET, (unit.key, unit.now_ms, PRUNED_A_CALL)).rowcount

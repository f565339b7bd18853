"""Jobs that are read back: ``outcomes`` says how they ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.job import JobState
from headrace.storage.limits import MESSAGE_LIMIT_BYTES
from headrace.storage.sqlite.engine.rows import json_list
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.record import read_errors
from headrace.storage.sqlite.unit import UnitOfWork, find_unit
from headrace.storage.values import End

_OUTCOMES = """
SELECT id, key, state, reason, coalesce(length(result) > ?1, 0),
  CASE WHEN length(result) <= ?1 THEN result END
FROM (
  SELECT id, key, state, reason,
    CASE WHEN result_purge_at_ms IS NULL OR result_purge_at_ms > ?2 THEN result END AS result
  FROM jobs
  WHERE queue = ?3 AND id IN (SELECT value FROM json_each(?4)) AND is_next = 0
    AND (purge_at_ms IS NULL OR purge_at_ms > ?2)
)
"""


def outcomes(step: Step, name: QueueName, job_ids: Sequence[str]) -> list[End]:
    """Return how jobs stand."""
    unit = find_unit(step, name)
    rows = []
    if unit is not None:
        values = (MESSAGE_LIMIT_BYTES, step.now_ms, unit.key, json_list(job_ids))
        rows = [_end(unit, *row) for row in step.db.execute(_OUTCOMES, values).fetchall()]
    known = {end.id: end for end in rows}
    return [known.get(job_id) or End(name[1], job_id, None) for job_id in job_ids]


def _end(unit: UnitOfWork, job_id: str, key: int, stored_state: str, reason: str, *of: Any) -> End:
    is_cut, result = of
    state = JobState(stored_state)
    if state is JobState.COMPLETED:
        return End(unit.queue, job_id, state, result=result, is_cut=bool(is_cut))
    if not state.is_terminal:
        return End(unit.queue, job_id, state)
    errors = read_errors(unit.db, key, 1) if state is JobState.FAILED else []
    return End(unit.queue, job_id, state, reason, error=errors[0] if errors else None)

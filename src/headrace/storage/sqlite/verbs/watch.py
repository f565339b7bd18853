"""``watch``: registers a channel for jobs' ends and says how each stands."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.job import JobState
from headrace.storage.limits import MESSAGE_LIMIT_BYTES
from headrace.storage.sqlite import finish, lines, successors
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.record import WAITING, Record, add_channel, load, read_errors
from headrace.storage.sqlite.unit import UnitOfWork, find_unit
from headrace.storage.values import End

_RESULT = """
SELECT result FROM jobs
WHERE key = ? AND (result_purge_at_ms IS NULL OR result_purge_at_ms > ?)
"""


def watch(step: Step, name: QueueName, job_ids: Sequence[str], channel: str) -> list[End]:
    """Register a channel for jobs' ends and say how each stands."""
    unit = find_unit(step, name)
    if unit is None:
        return [End(name[1], job_id, None) for job_id in job_ids]
    known = load(unit, job_ids)
    for record in known.values():
        if record.state in WAITING and record.is_overdue(unit.now_ms):
            finish.fail(unit, record, "expired")
    unit.flush()
    ends = [_stand(unit, job_id, known.get(job_id), channel) for job_id in job_ids]
    lines.close(unit)
    return ends


def _stand(unit: UnitOfWork, job_id: str, record: Record | None, channel: str) -> End:
    if record is None or record.is_erased:
        return End(unit.queue, job_id, None)
    state = JobState(record.state)
    if state is JobState.COMPLETED:
        row = unit.db.execute(_RESULT, (record.key, unit.now_ms)).fetchone()
        result = row[0] if row else None
        is_cut = result is not None and len(result) > MESSAGE_LIMIT_BYTES
        return End(unit.queue, job_id, state, result=None if is_cut else result, is_cut=is_cut)
    if state is JobState.FAILED:
        sql = "SELECT reason FROM jobs WHERE key = ?"
        [reason] = unit.db.execute(sql, (record.key,)).fetchone()
        errors = read_errors(unit.db, record.key, 1)
        return End(unit.queue, job_id, state, reason, error=errors[0] if errors else None)
    if channel and record.next_update:
        successors.add_channel_of(unit, record, channel)
    elif channel and state is not JobState.CANCELLED:
        add_channel(unit, record, channel)
    return End(unit.queue, job_id, state)

"""``watch``: registers a channel for jobs' ends and says how each stands."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.job import JobState
from headrace.storage.sqlite import moves
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.moves import MESSAGE_LIMIT
from headrace.storage.sqlite.record import WAITING, Record, add_inbox, load, read_errors
from headrace.storage.sqlite.unit import View, find_view
from headrace.storage.values import End


def watch(step: Step, name: QueueName, job_ids: Sequence[str], channel: str) -> list[End]:
    """Register a channel for jobs' ends and say how each stands."""
    view = find_view(step, name)
    if view is None:
        return [End(name[1], job_id, None) for job_id in job_ids]
    known = load(view, job_ids)
    for record in known.values():
        if record.state in WAITING and record.is_overdue(view.now):
            moves.fail(view, record, "expired")
    view.flush()
    ends = [_stand(view, job_id, known.get(job_id), channel) for job_id in job_ids]
    view.close()
    return ends


def _stand(view: View, job_id: str, record: Record | None, channel: str) -> End:
    if record is None or record.is_erased:
        return End(view.queue, job_id, None)
    state = JobState(record.state)
    if state is JobState.COMPLETED:
        sql = "SELECT result FROM jobs WHERE key = ? AND (result_dies IS NULL OR result_dies > ?)"
        row = view.db.execute(sql, (record.key, view.now)).fetchone()
        result = row[0] if row else None
        is_cut = result is not None and len(result) > MESSAGE_LIMIT
        return End(view.queue, job_id, state, result=None if is_cut else result, is_cut=is_cut)
    if state is JobState.FAILED:
        sql = "SELECT reason FROM jobs WHERE key = ?"
        [reason] = view.db.execute(sql, (record.key,)).fetchone()
        errors = read_errors(view.db, record.key, 1)
        return End(view.queue, job_id, state, reason, error=errors[0] if errors else None)
    if state is not JobState.CANCELLED and channel:
        add_inbox(view, record, channel)
    return End(view.queue, job_id, state)

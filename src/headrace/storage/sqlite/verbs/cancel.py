"""``cancel``: ends waiting jobs and asks active ones to stop."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.job import CancelOutcome, JobState
from headrace.storage.sqlite import moves
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.incarnation import channel_of
from headrace.storage.sqlite.record import TERMINAL, Record, load
from headrace.storage.sqlite.unit import View, find_view
from headrace.storage.values import End


def cancel(step: Step, name: QueueName, job_ids: Sequence[str]) -> list[CancelOutcome]:
    """End waiting jobs and ask active ones to stop."""
    view = find_view(step, name)
    if view is None:
        return [CancelOutcome.NOT_FOUND] * len(job_ids)
    known = load(view, job_ids)
    outcomes = [_cancel(view, known.get(job_id)) for job_id in job_ids]
    view.close()
    return outcomes


def _cancel(view: View, record: Record | None) -> CancelOutcome:
    if record is None or record.is_erased:
        return CancelOutcome.NOT_FOUND
    if record.state == "cancelled":
        return CancelOutcome.CANCELLED
    if record.state in TERMINAL:
        return CancelOutcome.FINISHED
    if record.state == "active":
        if not record.cancel:
            record.cancel = 1
            view.db.execute("UPDATE jobs SET cancel = 1 WHERE key = ?", (record.key,))
        # Its worker beats at once when it hears of this, and the answer says which jobs.
        channel = channel_of(view, record.owner)
        if channel:
            moves.tell(view, channel, End(view.queue, record.id, JobState.ACTIVE))
        return CancelOutcome.REQUESTED
    moves.cancel(view, record, keep=record.keep)
    return CancelOutcome.CANCELLED

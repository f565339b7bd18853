"""``cancel``: ends waiting jobs and asks active ones to stop."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from headrace.job import CancelOutcome, JobState
from headrace.storage.sqlite import finish, lines
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.incarnations import channel_of
from headrace.storage.sqlite.record import TERMINAL, Record, ask_to_stop, load
from headrace.storage.sqlite.unit import UnitOfWork, find_unit
from headrace.storage.sqlite.wake import notify
from headrace.storage.values import End


def cancel(
    step: Step,
    name: QueueName,
    job_ids: Sequence[str],
    *,
    only_next: bool,
    states: Collection[JobState],
) -> list[CancelOutcome]:
    """End waiting jobs and ask active ones to stop, or end successors alone.

    With ``states`` only those that are in one of them.
    """
    unit = find_unit(step, name)
    if unit is None:
        return [CancelOutcome.NOT_FOUND] * len(job_ids)
    known = load(unit, job_ids)
    end = _cancel_next if only_next else partial(_cancel, states=states)
    outcomes = [end(unit, known.get(job_id)) for job_id in job_ids]
    lines.close(unit)
    return outcomes


def _cancel(
    unit: UnitOfWork, record: Record | None, *, states: Collection[JobState]
) -> CancelOutcome:
    if record is None or record.is_erased:
        return CancelOutcome.NOT_FOUND
    if record.state == "cancelled":
        return CancelOutcome.CANCELLED
    if record.state in TERMINAL:
        return CancelOutcome.FINISHED
    if states and record.state not in states:
        # What follows an active job is blocked, whatever that one is.
        is_next = record.state == "active" and JobState.BLOCKED in states
        return _cancel_next(unit, record if is_next else None)
    if record.state == "active":
        ask_to_stop(unit, record)
        finish.cancel_next(unit, record)
        # Its worker beats at once when it hears of this, and the answer says which jobs.
        channel = channel_of(unit, record.owner)
        if channel:
            notify(unit.step, channel, End(unit.queue, record.id, JobState.ACTIVE))
        return CancelOutcome.REQUESTED
    finish.cancel(unit, record, keep_ms=record.keep_ms)
    return CancelOutcome.CANCELLED


def _cancel_next(unit: UnitOfWork, record: Record | None) -> CancelOutcome:
    is_there = record is not None and finish.cancel_next(unit, record)
    return CancelOutcome.CANCELLED if is_there else CancelOutcome.NOT_FOUND

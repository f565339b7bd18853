"""``enqueue``: stores jobs, unless they are there already."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.job import EnqueueOutcome
from headrace.request import JobRequest
from headrace.storage.sqlite import intake, moves
from headrace.storage.sqlite.calls import Memory
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.intake import NewJob
from headrace.storage.sqlite.record import add_channel, join, with_channel
from headrace.storage.sqlite.unit import UnitOfWork, list_queue, open_unit
from headrace.storage.values import CallId

_LETTERS = {outcome: outcome.value[0] for outcome in EnqueueOutcome}
_OUTCOMES = {letter: outcome for outcome, letter in _LETTERS.items()}


def enqueue(
    step: Step, name: QueueName, jobs: Sequence[JobRequest], call: CallId
) -> list[EnqueueOutcome]:
    """Store jobs; a repeated call answers from memory."""
    unit = open_unit(step, name)
    memory = Memory(unit, call)
    if memory.answer is not None:
        return [_OUTCOMES[letter] for letter in memory.answer]
    list_queue(unit)
    outcomes = _store_all(unit, jobs)
    memory.keep("".join([_LETTERS[outcome] for outcome in outcomes]))
    unit.close()
    return outcomes


def _store_all(unit: UnitOfWork, jobs: Sequence[JobRequest]) -> list[EnqueueOutcome]:
    # An id that was just drawn at random can't be there.
    asked = [job.id for job in jobs if not job.is_new_id]
    standing = intake.standing(unit, asked) if asked else {}
    new: dict[str, NewJob] = {}
    outcomes = []
    joined: list[str] = []
    for job in jobs:
        record = standing.get(job.id)
        if record is not None:
            is_completed = record.state == "completed"
            if not is_completed and job.channel:
                add_channel(unit, record, job.channel)
                joined.append(job.id)
            outcomes.append(EnqueueOutcome.COMPLETED if is_completed else EnqueueOutcome.DUPLICATE)
        elif job.id in new:
            outcomes.append(EnqueueOutcome.DUPLICATE)
            if job.channel:
                twin = new[job.id]
                twin.channels = with_channel(twin.channels, job.channel)
                joined.append(job.id)
        else:
            new[job.id] = born = intake.new(unit, job)
            moves.enter(unit, born, unit.now_ms + job.delay_ms if job.delay_ms else job.run_at_ms)
            is_ready = born.due_ms is None
            outcomes.append(EnqueueOutcome.QUEUED if is_ready else EnqueueOutcome.SCHEDULED)
    intake.write(unit, new.values())
    if joined:
        join(unit, joined)
    return outcomes

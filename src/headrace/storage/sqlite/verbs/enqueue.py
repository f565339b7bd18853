"""``enqueue``: stores jobs, unless they are there already."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.job import EnqueueOutcome
from headrace.request import JobRequest
from headrace.storage.sqlite import batch
from headrace.storage.sqlite.calls import Memory
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.unit import list_queue, open_unit
from headrace.storage.values import CallId

_LETTERS = {
    EnqueueOutcome.QUEUED: "q",
    EnqueueOutcome.SCHEDULED: "s",
    EnqueueOutcome.DUPLICATE: "d",
    EnqueueOutcome.COMPLETED: "c",
    EnqueueOutcome.UPDATED: "u",
}
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
    outcomes = batch.store(unit, jobs)
    memory.keep("".join([_LETTERS[outcome] for outcome in outcomes]))
    unit.close()
    return outcomes

"""``fire``: stores the jobs of occurrences that are later than the last of their schedule."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.job import EnqueueOutcome, outcome_of
from headrace.storage.schedules import Occurrence
from headrace.storage.sqlite import batch, fired, lines
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.unit import list_queue, open_unit


def fire(
    step: Step, name: QueueName, occurrences: Sequence[Occurrence], until_ms: int
) -> list[EnqueueOutcome] | None:
    """Store the jobs of occurrences; None if it is too late."""
    if step.now_ms > until_ms:
        return None
    unit = open_unit(step, name)
    last = fired.last_instants(unit, {each.schedule_id for each in occurrences})
    new: dict[int, Occurrence] = {}
    for index, occurrence in enumerate(occurrences):
        last_ms = last.get(occurrence.schedule_id)
        if last_ms is None or occurrence.instant_ms > last_ms:
            last[occurrence.schedule_id] = occurrence.instant_ms
            new[index] = occurrence
    outcomes = [EnqueueOutcome.DUPLICATE] * len(occurrences)
    if new:
        list_queue(unit)
        jobs = [occurrence.job for occurrence in new.values()]
        stored = batch.store(unit, jobs, may_pass=True)
        for index, outcome in zip(new, stored, strict=True):
            outcomes[index] = outcome_of(outcome)
        fired.keep(unit, {each.schedule_id: last[each.schedule_id] for each in new.values()})
        lines.close(unit)
    return outcomes

"""``enqueue``: stores jobs, unless they are there already."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headrace.job import EnqueueOutcome, FirstUse, Verdict, outcome_of
from headrace.request import JobRequest
from headrace.storage.sqlite import batch, lines
from headrace.storage.sqlite.calls import Memory
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.unit import list_queue, open_unit
from headrace.storage.values import CallId

_LETTERS = {
    EnqueueOutcome.QUEUED: "q",
    EnqueueOutcome.SCHEDULED: "s",
    EnqueueOutcome.BLOCKED: "b",
    EnqueueOutcome.DUPLICATE: "d",
    EnqueueOutcome.COMPLETED: "c",
    EnqueueOutcome.UPDATED: "u",
}
_OUTCOMES = {letter: outcome for outcome, letter in _LETTERS.items()}


def enqueue(step: Step, name: QueueName, jobs: Sequence[JobRequest], call: CallId) -> list[Verdict]:
    """Store jobs; a repeated call answers from memory."""
    unit = open_unit(step, name)
    memory = Memory(unit, call)
    if memory.answer is not None:
        return read_answer(memory.answer)
    list_queue(unit)
    verdicts = batch.store(unit, jobs)
    memory.keep(_answer(verdicts))
    lines.close(unit)
    return verdicts


def _answer(verdicts: Sequence[Verdict]) -> str:
    """Return a letter a job, and on a second line, if need be, the ids of first ones by place."""
    letters = "".join([_LETTERS[outcome_of(verdict)] for verdict in verdicts])
    firsts = {n: one.id for n, one in enumerate(verdicts) if isinstance(one, FirstUse)}
    return f"{letters}\n{msgspec.json.encode(firsts).decode()}" if firsts else letters


def read_answer(answer: str) -> list[Verdict]:
    """Return the verdicts of an answer that was remembered."""
    letters, _, said = answer.partition("\n")
    verdicts: list[Verdict] = [_OUTCOMES[letter] for letter in letters]
    firsts = msgspec.json.decode(said, type=dict[int, str]) if said else {}
    for n, job_id in firsts.items():
        verdicts[n] = FirstUse(outcome_of(verdicts[n]), job_id)
    return verdicts

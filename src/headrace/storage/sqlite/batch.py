"""The jobs of one call, stored."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import QueueFull
from headrace.job import EnqueueOutcome, JobState, Verdict
from headrace.request import JobRequest
from headrace.storage.sqlite import intake, moves, successors, updates
from headrace.storage.sqlite.idempotency import Firsts
from headrace.storage.sqlite.intake import NewJob
from headrace.storage.sqlite.record import Record, add_channel, join, with_channel
from headrace.storage.sqlite.unit import UnitOfWork


def store(unit: UnitOfWork, jobs: Sequence[JobRequest], *, may_pass: bool = False) -> list[Verdict]:
    """Store jobs, unless they are there already, and return the outcome of each.

    Jobs that their sender can't send in smaller calls ``may_pass`` the number that the queue takes,
    where it is not reached.
    """
    before = _waiting(unit)
    # An id that was just drawn at random can't be there.
    asked = [job.id for job in jobs if not job.is_new_id]
    standing: dict[str, Record | None] = {}
    if asked:
        standing.update(intake.standing(unit, asked))
    new: dict[str, NewJob] = {}
    outcomes: list[Verdict] = []
    firsts = Firsts(unit, [job for job in jobs if job.idempotency_key])
    joined: list[str] = []
    for job in jobs:
        if job.idempotency_key and (first := firsts.of(job)):
            outcomes.append(first)
            continue
        record = standing.get(job.id)
        if record is not None and intake.makes_room(record, job):
            unit.erase_ended(record.key, record.state)
            record = standing[job.id] = None
        if record is None and job.id in new:
            if job.update is None:
                outcomes.append(_meet_twin(new[job.id], job, joined))
                continue
            brought = [*new]
            _write(unit, new)
            standing.update(intake.standing(unit, brought))
            record = standing[job.id]
        if record is not None:
            outcomes.append(met := _meet(unit, record, job, joined))
            firsts.note(job, met)
        else:
            new[job.id] = born = intake.new(unit, job)
            due_ms = intake.due_ms_of(unit, job) if job.delay_ms else job.run_at_ms
            moves.enter(unit, born, due_ms)
            outcomes.append(EnqueueOutcome(born.state))
            firsts.note(job, EnqueueOutcome.QUEUED)
    _write(unit, new)
    firsts.write()
    _check_length(unit, before, may_pass=may_pass)
    if joined:
        join(unit, joined)
    return outcomes


def _write(unit: UnitOfWork, new: dict[str, NewJob]) -> None:
    intake.write(unit, new.values())
    new.clear()


def _meet(unit: UnitOfWork, record: Record, job: JobRequest, joined: list[str]) -> EnqueueOutcome:
    """Have a job meet the one of its id; note that in ``joined`` if it waits for the result."""
    if job.update is not None:
        change = successors.store if record.state == "active" else updates.apply
        change(unit, record, job, job.update)
        return EnqueueOutcome.UPDATED
    if job.channel and not JobState(record.state).is_terminal:
        add_channel(unit, record, job.channel)
        joined.append(job.id)
    is_completed = record.state == "completed"
    return EnqueueOutcome.COMPLETED if is_completed else EnqueueOutcome.DUPLICATE


def _meet_twin(twin: NewJob, job: JobRequest, joined: list[str]) -> EnqueueOutcome:
    """Have a job meet a new one of its id that came in the same call."""
    if job.channel:
        twin.channels = with_channel(twin.channels, job.channel)
        joined.append(job.id)
    return EnqueueOutcome.DUPLICATE


def _check_length(unit: UnitOfWork, before: int, *, may_pass: bool) -> None:
    """See that a call has not brought the jobs that wait over the number that its queue takes."""
    limit = unit.settings.max_length
    if not limit or (may_pass and before < limit):
        return
    if _waiting(unit) > max(limit, before):
        raise QueueFull(unit.queue, limit=limit, waiting=before)


def _waiting(unit: UnitOfWork) -> int:
    """Return how many jobs have not ended and are not active."""
    counts = unit.counts
    return counts["queued"] + counts["scheduled"] + counts["retrying"] + counts["blocked"]

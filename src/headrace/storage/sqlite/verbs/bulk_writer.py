"""Writes that bring in all of their jobs or none: the verbs of `BulkWriter`."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headrace.errors import StageLost
from headrace.job import ADDED, Verdict
from headrace.request import JobRequest
from headrace.storage.sqlite import batch as jobs_of_a_call
from headrace.storage.sqlite import lines, stages, writes
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.stages import Stage
from headrace.storage.sqlite.unit import UnitOfWork, find_unit, list_queue, open_unit
from headrace.storage.sqlite.writes import Write
from headrace.storage.values import CommitOutcome, StageInfo, WriteInfo


def stage(
    step: Step,
    name: QueueName,
    write_id: str,
    token: str,
    jobs: Sequence[JobRequest],
    *,
    before: int,
    ttl_ms: int,
) -> int:
    """Lay down jobs behind those of the same stage; return how many lie there."""
    unit = open_unit(step, name)
    found = stages.find(unit, write_id, token)
    there = found.jobs if found is not None else 0
    if there < before or (found is not None and found.is_committed):
        raise _lost(write_id, token)
    if found is None:
        if not jobs:
            return 0
        list_queue(unit)
        found = stages.new(unit, write_id, token)
    if there == before and jobs:
        stages.add(unit, found, jobs)
    stages.keep(unit, found, ttl_ms)
    return found.jobs


def commit(
    step: Step,
    name: QueueName,
    write_id: str,
    committed: Sequence[StageInfo],
    *,
    batch: int,
    keep_ms: int,
) -> CommitOutcome:
    """Have stages be published, all of them, unless that was said before."""
    unit = open_unit(step, name)
    write = writes.find(unit, write_id) or Write(-1, 0, 0, 0, keep_ms)
    if write.batch >= batch:
        return CommitOutcome.KNOWN
    found = {info.token: _standing(unit, write_id, info) for info in committed}
    if len(found) < len(committed):
        raise StageLost(f"a stage of write {write_id!r} is named twice: name each once")
    list_queue(unit)
    stages.commit(unit, found.values())
    write.batch, write.keep_ms = batch, keep_ms
    write.stages_left += len(found)
    write.jobs += sum(stage.jobs for stage in found.values())
    writes.keep(unit, write_id, write)
    return CommitOutcome.COMMITTED


def _standing(unit: UnitOfWork, write_id: str, info: StageInfo) -> Stage:
    found = stages.find(unit, write_id, info.token)
    if found is None or found.is_committed or found.jobs != info.length:
        raise _lost(write_id, info.token)
    return found


class Published(msgspec.Struct, frozen=True):
    """What was published in a call, and how many stages are left."""

    jobs: Sequence[JobRequest]
    outcomes: Sequence[Verdict]
    stages_left: int


def publish(step: Step, name: QueueName) -> Published:
    """Store the jobs of one call that staged."""
    unit = find_unit(step, name)
    chunk = stages.take(unit) if unit is not None else None
    if unit is None or chunk is None:
        return Published((), (), 0)
    list_queue(unit)
    outcomes = jobs_of_a_call.store(unit, chunk.jobs, may_pass=True)
    write = writes.find(unit, chunk.write_id)
    if write is not None:
        write.added += sum(outcome in ADDED for outcome in outcomes)
        write.stages_left -= chunk.is_last
        writes.keep(unit, chunk.write_id, write)
    lines.close(unit)
    return Published(chunk.jobs, outcomes, stages.count_committed(unit))


def discard(step: Step, name: QueueName, write_id: str, tokens: Sequence[str]) -> int:
    """Drop stages that are not committed; return how many those were."""
    unit = find_unit(step, name)
    if unit is None:
        return 0
    found = [stages.find(unit, write_id, token) for token in dict.fromkeys(tokens)]
    loose = [stage for stage in found if stage is not None and not stage.is_committed]
    stages.drop(unit, loose)
    return len(loose)


def read_write(step: Step, name: QueueName, write_id: str) -> WriteInfo | None:
    """Return how a committed write stands."""
    unit = find_unit(step, name)
    write = writes.find(unit, write_id) if unit is not None else None
    if write is None:
        return None
    return WriteInfo(
        id=write_id,
        batch=write.batch,
        stages_left=write.stages_left,
        jobs=write.jobs,
        added=write.added,
    )


def _lost(write_id: str, token: str) -> StageLost:
    return StageLost(
        f"stage {token!r} of write {write_id!r} is not as it was left: it has ended, was dropped "
        "or is committed; stage it again under a new token"
    )

"""What operators change of a queue and of its jobs: the verbs of `Admin`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import msgspec

from headrace.job import JobState
from headrace.storage.limits import BATCH_LIMIT
from headrace.storage.queues import QueueSettings, SettingChanges
from headrace.storage.sqlite import events, finish, gates, lines, stages, writes
from headrace.storage.sqlite.engine.rows import json_list
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.moves import Anew, move
from headrace.storage.sqlite.record import load
from headrace.storage.sqlite.unit import find_unit, list_queue, open_unit, set_settings

_DELETE_QUEUE = (
    "DELETE FROM incarnations WHERE queue = ?",
    "DELETE FROM lanes WHERE queue = ?",
    "DELETE FROM readers WHERE queue = ?",
    "DELETE FROM limits WHERE queue = ?",
    "DELETE FROM strikes WHERE queue = ?",
    """UPDATE queues SET is_struck = 0, has_conditions = 0, strikes_version = 0, aged = 0
WHERE key = ?""",
    "UPDATE queues SET is_listed = 0, is_paused = 0, told = 0, gate_due_ms = NULL WHERE key = ?",
)


def pause(step: Step, name: QueueName) -> None:
    """Stop claims."""
    unit = open_unit(step, name)
    list_queue(unit)
    step.db.execute("UPDATE queues SET is_paused = 1 WHERE key = ?", (unit.key,))


def resume(step: Step, name: QueueName) -> None:
    """Allow claims again and wake a consumer."""
    unit = open_unit(step, name)
    step.db.execute("UPDATE queues SET is_paused = 0 WHERE key = ?", (unit.key,))
    unit.is_paused = False
    unit.wakes.all()
    unit.close()


def configure(step: Step, name: QueueName, **changes: Unpack[SettingChanges]) -> None:
    """Change what a queue keeps and takes."""
    unit = open_unit(step, name)
    set_settings(step.db, unit.key, changes)
    if changes.get("max_active", unit.settings.max_active) != unit.settings.max_active:
        unit.wakes.all()
        unit.close()


def delete_queue(step: Step, name: QueueName, *, is_forced: bool) -> int | None:
    """Delete a queue without jobs; return how much is left for another call.

    Its row stays, off the list: it numbers the entries, and producers' calls belong to it.
    """
    unit = find_unit(step, name)
    if unit is None:
        return 0
    sql = "SELECT EXISTS (SELECT 1 FROM incarnations WHERE queue = ?)"
    [has_incarnations] = step.db.execute(sql, (unit.key,)).fetchone()
    if any(unit.counts.values()) or (has_incarnations and not is_forced):
        return None
    stages.drop_committed(unit)
    writes.forget_unpublished(unit)
    left = events.erase(step.db, unit.key, limit=BATCH_LIMIT) + stages.erase_over(unit)
    left += gates.erase(step.db, unit.key, limit=BATCH_LIMIT)
    if not left:
        for sql in _DELETE_QUEUE:
            step.db.execute(sql, (unit.key,))
        set_settings(step.db, unit.key, msgspec.structs.asdict(QueueSettings()))
    return left


def redrive(step: Step, name: QueueName, job_ids: Sequence[str]) -> int:
    """Queue dead letters again, counts and error history reset."""
    unit = find_unit(step, name)
    if unit is None:
        return 0
    known = load(unit, job_ids)
    done = []
    for job_id in job_ids:
        record = known.get(job_id)
        if record is not None and record.state == "failed":
            move(unit, record, Anew(unit.next_tail()), "queued", detail="redriven")
            done.append(record.key)
    if done:
        sql = "DELETE FROM errors WHERE job IN (SELECT value FROM json_each(?))"
        step.db.execute(sql, (json_list(done),))
    unit.close()
    return len(done)


def purge(step: Step, name: QueueName, state: JobState, job_ids: Sequence[str]) -> int:
    """Delete jobs that are in one state and tell who waits for them."""
    unit = find_unit(step, name)
    if unit is None or state is JobState.ACTIVE:
        return 0
    known = load(unit, job_ids)
    n = 0
    for record in known.values():
        if record.state == state.value:
            finish.delete(unit, record)
            n += 1
    lines.close(unit)
    return n

"""Incarnations: who may claim, how they beat, and what they hold."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.job import DEFAULT_LANE, Claim
from headrace.storage.incarnations import BeatReply, IncarnationInfo
from headrace.storage.limits import CANCELS_A_BEAT, MOVED_A_CALL
from headrace.storage.sqlite import attempts, incarnations, lines, terms
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.incarnations import count_owned, key_of, owned
from headrace.storage.sqlite.record import load
from headrace.storage.sqlite.unit import find_unit, list_queue, open_unit


def register(step: Step, name: QueueName, worker: IncarnationInfo) -> None:
    """Make an incarnation known."""
    unit = open_unit(step, name)
    list_queue(unit)
    incarnations.register(unit, worker)
    for task, lane in worker.tasks.items():
        if lane == DEFAULT_LANE:
            step.db.execute("DELETE FROM lanes WHERE queue = ? AND task = ?", (unit.key, task))
        else:
            sql = "INSERT OR REPLACE INTO lanes (queue, task, lane) VALUES (?, ?, ?)"
            step.db.execute(sql, (unit.key, task, lane))
    lines.follow(unit, terms.declare(unit, worker.limits))
    lines.close(unit)


def beat(step: Step, name: QueueName, incarnation: str) -> BeatReply:
    """Say that an incarnation lives."""
    key = incarnations.beat(step, name, incarnation)
    if key is None:
        return BeatReply(is_gone=True, cancel_ids=[])
    sql = "SELECT id FROM jobs WHERE owner = ? AND cancel LIMIT ?"
    asked = step.db.execute(sql, (key, CANCELS_A_BEAT)).fetchall()
    return BeatReply(is_gone=False, cancel_ids=[job_id for (job_id,) in asked])


def held(step: Step, name: QueueName, incarnation: str) -> list[tuple[str, Claim]]:
    """Return what an incarnation has claimed."""
    unit = find_unit(step, name)
    if unit is None:
        return []
    sql = "SELECT id, epoch, nonce FROM jobs WHERE owner = ?"
    rows = step.db.execute(sql, (key_of(unit, incarnation),)).fetchall()
    return [(job_id, Claim(epoch, nonce)) for job_id, epoch, nonce in rows]


def put_back(step: Step, name: QueueName, jobs: Sequence[tuple[str, Claim]]) -> None:
    """Return claimed jobs to the head, in the order given, free of charge."""
    unit = find_unit(step, name)
    if unit is None:
        return
    known = load(unit, [job_id for job_id, _ in jobs])
    for job_id, claim in reversed(jobs):
        record = known.get(job_id)
        if record is None or record.state != "active":
            continue
        if (record.epoch, record.nonce) == (claim.epoch, claim.nonce):
            attempts.put_back(unit, record)
    lines.close(unit)


def retire(step: Step, name: QueueName, incarnation: str) -> int:
    """Put back what an incarnation still has, and forget it."""
    unit = find_unit(step, name)
    if unit is None:
        return 0
    owner = key_of(unit, incarnation)
    for record in owned(unit, owner, MOVED_A_CALL):
        attempts.put_back(unit, record)
    # A wake-up that ends with it must not leave jobs unseen.
    unit.wakes.all()
    unit.flush()
    left = count_owned(unit, owner)
    if left == 0:
        incarnations.note_left(unit, incarnation, "retired")
        incarnations.forget(unit, owner)
    lines.close(unit)
    return left

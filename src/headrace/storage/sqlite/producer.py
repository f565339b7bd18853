"""What brings jobs in and asks how they end: ``enqueue``, ``cancel``, ``watch``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.errors import StaleCall
from headrace.job import DEFAULT_LANE, CancelOutcome, EnqueueOutcome, Job, JobState
from headrace.storage.sqlite import records, workers
from headrace.storage.sqlite.records import INLINE_LIMIT, MESSAGE_LIMIT, Record
from headrace.storage.sqlite.step import QueueName, Step
from headrace.storage.sqlite.view import View, find_view, json_list, list_queue, open_view
from headrace.storage.values import CallId, End

CALLS_REMEMBERED = 2
CALLS_TTL_MS = 600_000

_INSERT = """
INSERT INTO jobs (queue, id, state, task, payload, tier, lane, created, at, seq, due, expires,
  max_stalls, keep, options, inbox)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_ADD_PAYLOAD = """
INSERT INTO payloads (job, body) VALUES ((SELECT key FROM jobs WHERE queue = ? AND id = ?), ?)
"""
_REMEMBER = """
INSERT INTO calls (queue, client, slot, number, answer, at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET number = excluded.number, answer = excluded.answer, at = excluded.at
"""
_GONE = """
SELECT key, id, state, inbox FROM jobs
WHERE queue = ? AND id IN (SELECT value FROM json_each(?)) AND dies <= ?
"""

_LETTERS = {outcome: outcome.value[0] for outcome in EnqueueOutcome}
_OUTCOMES = {letter: outcome for outcome, letter in _LETTERS.items()}


def enqueue(step: Step, name: QueueName, jobs: Sequence[Job], call: CallId) -> list[EnqueueOutcome]:
    """Store jobs; a repeated call answers from memory."""
    view = open_view(step, name)
    slot = call.number % CALLS_REMEMBERED
    sql = "SELECT number, answer, at FROM calls WHERE queue = ? AND client = ? AND slot = ?"
    known = step.db.execute(sql, (view.key, call.client, slot)).fetchone()
    if known is not None and known[2] > step.now - CALLS_TTL_MS:
        if known[0] == call.number:
            return [_OUTCOMES[letter] for letter in known[1]]
        if call.number < known[0]:
            raise StaleCall(f"enqueue call {call.number} is older than {known[0]}")
    list_queue(view)
    outcomes = _store_all(view, jobs)
    answer = "".join([_LETTERS[outcome] for outcome in outcomes])
    if known is None:
        forget_calls(view)
    step.db.execute(_REMEMBER, (view.key, call.client, slot, call.number, answer, step.now))
    view.close()
    return outcomes


def forget_calls(view: View) -> None:
    """Forget the calls that will not be repeated any more."""
    sql = "DELETE FROM calls WHERE queue = ? AND at <= ?"
    view.db.execute(sql, (view.key, view.now - CALLS_TTL_MS))


def _store_all(view: View, jobs: Sequence[Job]) -> list[EnqueueOutcome]:
    # An id that was just drawn at random can't be there.
    asked = [job.id for job in jobs if not job.is_new_id]
    standing = _standing(view, asked) if asked else {}
    rows: list[tuple[Any, ...]] = []
    payloads: list[tuple[int, str, bytes]] = []
    outcomes = []
    joined: list[str] = []
    new: dict[str, int] = {}
    for job in jobs:
        record = standing.get(job.id)
        if record is not None:
            is_completed = record.state == "completed"
            if not is_completed and job.reply_to:
                records.add_inbox(view, record, job.reply_to)
                joined.append(job.id)
            outcomes.append(EnqueueOutcome.COMPLETED if is_completed else EnqueueOutcome.DUPLICATE)
        elif job.id in new:
            outcomes.append(EnqueueOutcome.DUPLICATE)
            if job.reply_to:
                _add_to_row(rows, new[job.id], job.reply_to)
                joined.append(job.id)
        else:
            new[job.id] = len(rows)
            outcomes.append(_store(view, job, rows, payloads))
    view.db.executemany(_INSERT, rows)
    if payloads:
        view.db.executemany(_ADD_PAYLOAD, payloads)
    if joined:
        records.join(view, joined)
    if rows:
        view.tally("enqueued", len(rows))
    return outcomes


def _standing(view: View, job_ids: Sequence[str]) -> dict[str, Record]:
    """Return the records that stay; those that make room for new ones are deleted."""
    standing = records.load(view, job_ids)
    for job_id, record in list(standing.items()):
        if record.state in ("failed", "cancelled"):
            records.delete(view, record)
            del standing[job_id]
    gone = view.db.execute(_GONE, (view.key, json_list(job_ids), view.now)).fetchall()
    for key, _, state, _ in gone:
        view.count(records.pile_of(state), -1)
        view.erase(key)
    view.flush()
    return standing


def _add_to_row(rows: list[tuple[Any, ...]], at: int, channel: str) -> None:
    row = rows[at]
    rows[at] = (*row[:-1], records.join_inbox(row[-1], channel))


def _store(
    view: View, job: Job, rows: list[tuple[Any, ...]], payloads: list[tuple[int, str, bytes]]
) -> EnqueueOutcome:
    now = view.now
    payload: bytes | None = job.payload
    if len(job.payload) > INLINE_LIMIT:
        payloads.append((view.key, job.id, job.payload))
        payload = None
    due = now + job.delay_ms if job.delay_ms else job.run_at_ms
    expires = now + job.expires_in_ms if job.expires_in_ms else job.expires_at_ms
    is_later = due > now
    state = "scheduled" if is_later else "queued"
    view.count(state, 1)
    view.event(state, job.id, job.task)
    lane = job.lane or _lane_of(view, job.task)
    if is_later:
        view.note_due(due, lane)
    else:
        view.wake(lane)
    rows.append(
        (
            *(view.key, job.id, state, job.task, payload, job.priority, lane, now, now),
            *((None, due) if is_later else (view.next_tail(), None)),
            *(expires, job.max_stalls, job.keep_ms, job.options, job.reply_to or None),
        )
    )
    return EnqueueOutcome.SCHEDULED if is_later else EnqueueOutcome.QUEUED


def _lane_of(view: View, task: str) -> str:
    """Return what workers have said of a task that its producer doesn't know."""
    sql = "SELECT lane FROM lanes WHERE queue = ? AND task = ?"
    row = view.db.execute(sql, (view.key, task)).fetchone()
    return row[0] if row else DEFAULT_LANE


def cancel(step: Step, name: QueueName, job_ids: Sequence[str]) -> list[CancelOutcome]:
    """End waiting jobs and ask active ones to stop."""
    view = find_view(step, name)
    if view is None:
        return [CancelOutcome.NOT_FOUND] * len(job_ids)
    known = records.load(view, job_ids)
    outcomes = [_cancel(view, known.get(job_id)) for job_id in job_ids]
    view.close()
    return outcomes


def _cancel(view: View, record: Record | None) -> CancelOutcome:
    if record is None or record.is_erased:
        return CancelOutcome.NOT_FOUND
    if record.state == "cancelled":
        return CancelOutcome.CANCELLED
    if record.state in records.TERMINAL:
        return CancelOutcome.FINISHED
    if record.state == "active":
        if not record.cancel:
            record.cancel = 1
            view.db.execute("UPDATE jobs SET cancel = 1 WHERE key = ?", (record.key,))
        # Its worker beats at once when it hears of this, and the answer says which jobs.
        channel = workers.channel_of(view, record.owner)
        if channel:
            records.tell(view, channel, End(view.queue, record.id, JobState.ACTIVE))
        return CancelOutcome.REQUESTED
    records.cancel(view, record, keep=record.keep)
    return CancelOutcome.CANCELLED


def watch(step: Step, name: QueueName, job_ids: Sequence[str], channel: str) -> list[End]:
    """Register a channel for jobs' ends and say how each stands."""
    view = find_view(step, name)
    if view is None:
        return [End(name[1], job_id, None) for job_id in job_ids]
    known = records.load(view, job_ids)
    for record in known.values():
        if record.state in records.WAITING and record.is_overdue(view.now):
            records.fail(view, record, "expired")
    view.flush()
    ends = [_stand(view, job_id, known.get(job_id), channel) for job_id in job_ids]
    view.close()
    return ends


def _stand(view: View, job_id: str, record: Record | None, channel: str) -> End:
    if record is None or record.is_erased:
        return End(view.queue, job_id, None)
    state = JobState(record.state)
    if state is JobState.COMPLETED:
        sql = "SELECT result FROM jobs WHERE key = ? AND (result_dies IS NULL OR result_dies > ?)"
        row = view.db.execute(sql, (record.key, view.now)).fetchone()
        result = row[0] if row else None
        is_cut = result is not None and len(result) > MESSAGE_LIMIT
        return End(view.queue, job_id, state, result=None if is_cut else result, is_cut=is_cut)
    if state is JobState.FAILED:
        sql = "SELECT reason FROM jobs WHERE key = ?"
        [reason] = view.db.execute(sql, (record.key,)).fetchone()
        errors = records.read_errors(view.db, record.key, 1)
        return End(view.queue, job_id, state, reason, error=errors[0] if errors else None)
    if state is not JobState.CANCELLED and channel:
        records.add_inbox(view, record, channel)
    return End(view.queue, job_id, state)

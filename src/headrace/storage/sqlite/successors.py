"""The job that is blocked by the active one of its id, and runs next: a whole row beside it.

The active one's `next_update` says that there is one, and what that changes if it waits again.
"""

from __future__ import annotations

from headrace.request import JobRequest
from headrace.storage.sqlite import intake, updates
from headrace.storage.sqlite.intake import due_ms_of
from headrace.storage.sqlite.moves import Delayed, Ready, block, move, unblock
from headrace.storage.sqlite.record import (
    PAYLOAD,
    TERMINAL,
    WAITING,
    Record,
    Span,
    add_channel,
    load,
    load_next,
)
from headrace.storage.sqlite.unit import UnitOfWork
from headrace.update import Update, UpdateRunAt, read_update

_SAID = f"""
SELECT task, {PAYLOAD}, tier, lane,
  next_due_ms, expires_at_ms, max_stalls, keep_ms, options, coalesce(channels, ''),
  coalesce(on_failed, ''), coalesce(gates, ''), slots
FROM jobs WHERE key = ?
"""  # noqa: S608
_NOTE = "UPDATE jobs SET next_update = ? WHERE key = ?"
_LOST = """
SELECT id FROM jobs INDEXED BY jobs_id
WHERE queue = ?1 AND id > ?2 AND id <= ?3 AND is_next = 1 AND NOT EXISTS (
  SELECT 1 FROM jobs AS other INDEXED BY jobs_id
  WHERE other.queue = ?1 AND other.id = jobs.id AND other.next_update <> ''
)
"""
_NOTHING = Update(data=False, run_at=UpdateRunAt.NEVER, retry=False)


def store(unit: UnitOfWork, active: Record, job: JobRequest, update: Update) -> None:
    """Store what is to run after an active job, or change what is to already."""
    if not active.next_update:
        intake.copy_blocked(unit, active)
        block(unit)
    before = read_update(active.next_update) if active.next_update else _NOTHING
    successor = load_next(unit, active.id)
    updates.set_parts(unit, successor, job, update)
    if _takes_time(unit, successor, before, job, update):
        updates.set_expiry(unit, successor, job)
        sql = "UPDATE jobs SET next_due_ms = ? WHERE key = ?"
        due_ms = due_ms_of(unit, job)
        unit.db.execute(sql, (due_ms if due_ms > unit.now_ms else 0, successor.key))
    updates.add_channels(unit, successor, job.channel)
    _note(unit, active, update.over(before).word)
    unit.events.add("blocked", successor.id, successor.task)


def _takes_time(
    unit: UnitOfWork, successor: Record, before: Update, job: JobRequest, update: Update
) -> bool:
    if before.run_at is UpdateRunAt.NEVER:
        return update.run_at is not UpdateRunAt.NEVER  # there is no time to compare with
    its_ms = _next_due_ms(unit, successor)
    return updates.takes_time(unit, update, its_ms=its_ms, asked_ms=due_ms_of(unit, job))


def _next_due_ms(unit: UnitOfWork, successor: Record) -> int:
    sql = "SELECT next_due_ms FROM jobs WHERE key = ?"
    [due_ms] = unit.db.execute(sql, (successor.key,)).fetchone()
    return int(due_ms)


def _note(unit: UnitOfWork, active: Record, word: str) -> None:
    active.next_update = word
    unit.db.execute(_NOTE, (word, active.key))


def add_channel_of(unit: UnitOfWork, active: Record, channel: str) -> None:
    """Let a channel hear of the end of an active job's successor."""
    add_channel(unit, load_next(unit, active.id), channel)


def enter(unit: UnitOfWork, job_id: str) -> None:
    """Let the successor of a job in that has ended, of which nothing may be left."""
    unit.flush()
    successor = load_next(unit, job_id)
    due_ms = _next_due_ms(unit, successor)
    sql = "UPDATE jobs SET is_next = 0, next_due_ms = 0 WHERE key = ?"
    unit.db.execute(sql, (successor.key,))
    unit.stats.tally("enqueued")
    if due_ms > unit.now_ms:
        place, detail = Delayed("scheduled", due_ms), f"{due_ms}\tnext"
        move(unit, successor, place, "scheduled", detail=detail)
    else:
        move(unit, successor, Ready(unit.next_tail()), "queued", detail="next")


def take_up(unit: UnitOfWork, record: Record) -> None:
    """Change a job that waits again by its successor, if it has one, which is no more then."""
    if not record.next_update:
        return
    update = read_update(record.next_update)
    _note(unit, record, "")
    successor = load_next(unit, record.id)
    row = unit.db.execute(_SAID, (successor.key,)).fetchone()
    task, payload, tier, lane, due_ms, expires_at_ms, max_stalls, keep_ms = row[:8]
    options, channels, on_failed, gates, slots = row[8:]
    said = JobRequest(
        id=record.id,
        queue=unit.queue,
        task=task,
        payload=payload,
        priority=tier,
        lane=lane,
        run_at_ms=due_ms,
        expires_at_ms=expires_at_ms,
        max_stalls=max_stalls,
        keep_ms=keep_ms,
        options=options,
        channel=channels,
        on_failed=on_failed,
        gates=_as_asked(gates),
        slots=slots,
    )
    unblock(unit, successor)
    updates.apply(unit, record, said, update, is_joined=bool(successor.joined))


def _as_asked(stored: str) -> str:
    """Return gates that are stored as a job asks for them, which knows nothing of their terms."""
    return "\n".join(f"{name}\t" for name in stored.split("\n")) if stored else ""


def drop(unit: UnitOfWork, active: Record) -> Record | None:
    """Let an active job have no successor, and return the one that it had."""
    if not active.next_update:
        return None
    successor = load_next(unit, active.id)
    _note(unit, active, "")
    unblock(unit, successor)
    detail = f"next\t{successor.created_ms}"
    unit.events.add("cancelled", successor.id, successor.task, detail=detail)
    return successor


def mend(unit: UnitOfWork, span: Span) -> int:
    """Put those of some ids right whose active job was lost; return how many they were."""
    lost = [job_id for (job_id,) in unit.db.execute(_LOST, (unit.key, *span)).fetchall()]
    others = load(unit, lost) if lost else {}
    for job_id in lost:
        other = others.get(job_id)
        if other is not None and other.state in TERMINAL:
            unit.erase_ended(other.key, other.state)
        elif other is not None:
            _note(unit, other, Update().word)
        if other is None or other.state in TERMINAL:
            enter(unit, job_id)
        elif other.state in WAITING:
            take_up(unit, other)
    return len(lost)

"""Jobs that are read back: ``get`` and ``export`` all of each, ``outcomes`` how they ended."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from headrace.job import JobRecord, JobState
from headrace.storage.exports import ExportPage, export_cursor, not_a_cursor, place_behind
from headrace.storage.limits import (
    BATCH_LIMIT_BYTES,
    EXPORT_LOOKS,
    MESSAGE_LIMIT_BYTES,
)
from headrace.storage.sqlite.engine.rows import json_list
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.record import PAYLOAD, TERMINAL, read_errors, read_put_back
from headrace.storage.sqlite.unit import UnitOfWork, find_unit
from headrace.storage.values import End

_RECORD = f"""
SELECT key, id, state, task, tier, lane, failures, stalls, epoch, created_ms, changed_ms, due_ms,
  expires_at_ms, run_ms, nonce, cancel, reason, options,
  {PAYLOAD},
  result, result_purge_at_ms, progress, progress_text, progress_epoch, put_back,
  max_stalls, keep_ms, next_update, on_failed, gates, parked, slots
FROM jobs
"""  # noqa: S608
_GET = f"""{_RECORD}
WHERE queue = ? AND id = ? AND is_next = 0 AND (purge_at_ms IS NULL OR purge_at_ms > ?)
"""
_OF_KEY = f"{_RECORD} WHERE key = ?"
# The ids of one millisecond are sorted; all else is the order of the index.
_PLACES = """
SELECT key, changed_ms, id, purge_at_ms <= :now FROM jobs
WHERE queue = :queue AND state = :state AND purge_at_ms IS NOT NULL
  AND changed_ms < :now AND (changed_ms, id) > (:ended_ms, :id)
ORDER BY changed_ms, id LIMIT :looks
"""
_PLACE = re.compile(r"(-?\d{1,15}):([^\ud800-\udfff]+)", re.ASCII | re.DOTALL)
_FIRST = (-(2**63), "")
Ended = tuple[int, str]
"""When a job ended, and its id."""
_OUTCOMES = """
SELECT id, key, state, reason, coalesce(length(result) > ?1, 0),
  CASE WHEN length(result) <= ?1 THEN result END
FROM (
  SELECT id, key, state, reason,
    CASE WHEN result_purge_at_ms IS NULL OR result_purge_at_ms > ?2 THEN result END AS result
  FROM jobs
  WHERE queue = ?3 AND id IN (SELECT value FROM json_each(?4)) AND is_next = 0
    AND (purge_at_ms IS NULL OR purge_at_ms > ?2)
)
"""


def outcomes(step: Step, name: QueueName, job_ids: Sequence[str]) -> list[End]:
    """Return how jobs stand."""
    unit = find_unit(step, name)
    rows = []
    if unit is not None:
        values = (MESSAGE_LIMIT_BYTES, step.now_ms, unit.key, json_list(job_ids))
        rows = [_end(unit, *row) for row in step.db.execute(_OUTCOMES, values).fetchall()]
    known = {end.id: end for end in rows}
    return [known.get(job_id) or End(name[1], job_id, None) for job_id in job_ids]


def _end(unit: UnitOfWork, job_id: str, key: int, stored_state: str, reason: str, *of: Any) -> End:
    is_cut, result = of
    state = JobState(stored_state)
    if state is JobState.COMPLETED:
        return End(unit.queue, job_id, state, result=result, is_cut=bool(is_cut))
    if not state.is_terminal:
        return End(unit.queue, job_id, state)
    errors = read_errors(unit.db, key, 1) if state is JobState.FAILED else []
    return End(unit.queue, job_id, state, reason, error=errors[0] if errors else None)


def get(step: Step, name: QueueName, job_id: str) -> JobRecord | None:
    """Return all that is kept of one job."""
    unit = find_unit(step, name)
    values = (unit.key if unit else None, job_id, step.now_ms)
    row = step.db.execute(_GET, values).fetchone()
    return None if row is None else _record(step, name[1], row)


def read_cursor(queue: str, state: JobState, cursor: str) -> Ended:
    """Return the place behind which a page of an export begins.

    Raises:
        InvalidOption: no page of such an export has given out this cursor.
    """
    said = place_behind(cursor, queue, state)
    match = _PLACE.fullmatch(said)
    if said and match is None:
        raise not_a_cursor(cursor, queue, state)
    return (int(match[1]), match[2]) if match else _FIRST


def export(step: Step, name: QueueName, state: JobState, after: Ended, limit: int) -> ExportPage:
    """Return one page of jobs that have ended in a state, from behind a place on."""
    records: list[JobRecord] = []
    seen, size, looks, is_full = after, 0, 0, False
    with closing(_places(step, find_unit(step, name), state, after)) as places:
        for key, ended_ms, job_id, is_over in places:
            record = None if is_over else _of_key(step, name[1], key)
            size += 0 if record is None else _size(record)
            if len(records) == limit or (records and size > BATCH_LIMIT_BYTES):
                is_full = True
                break
            if record is not None:
                records.append(record)
            seen = (ended_ms, job_id)
            looks += 1
    place = "" if seen == _FIRST else "{}:{}".format(*seen)
    cursor = export_cursor(name[1], state, place)
    return ExportPage(records, cursor, has_more=is_full or looks == EXPORT_LOOKS)


def _places(step: Step, unit: UnitOfWork | None, state: JobState, after: Ended) -> sqlite3.Cursor:
    values = {
        "queue": unit.key if unit else None,
        "state": state.value,
        "now": step.now_ms,
        "ended_ms": after[0],
        "id": after[1],
        "looks": EXPORT_LOOKS,
    }
    return step.db.execute(_PLACES, values)


def _of_key(step: Step, queue: str, key: int) -> JobRecord:
    return _record(step, queue, step.db.execute(_OF_KEY, (key,)).fetchone())


def _size(record: JobRecord) -> int:
    texts = (text for error in record.errors for text in (error.message, error.traceback))
    parts = (record.payload or b"", record.result or b"", record.options, *texts)
    return sum(map(len, parts))


def _record(step: Step, queue: str, row: tuple[Any, ...]) -> JobRecord:
    key, job_id, state, task, tier, lane, failures, stalls, epoch, created_ms, changed_ms = row[:11]
    due_ms, expires_at_ms, run_ms, nonce, cancel, reason, options, payload, result = row[11:20]
    result_purge_at_ms, progress, progress_text, progress_epoch, put_back = row[20:25]
    max_stalls, keep_ms, next_update, on_failed, gates, parked, slots = row[25:]
    is_result_over = result_purge_at_ms is not None and result_purge_at_ms <= step.now_ms
    has_progress = progress is not None and progress_epoch == epoch  # of the last attempt
    return JobRecord(
        id=job_id,
        queue=queue,
        task=task,
        state=JobState(state),
        priority=tier,
        lane=lane,
        failures=failures,
        stalls=stalls,
        starts=epoch,
        created_ms=created_ms,
        changed_ms=changed_ms,
        due_ms=due_ms or 0,
        expires_ms=expires_at_ms,
        run_ms=run_ms,
        incarnation=nonce.partition("/")[0],
        cancel_requested=bool(cancel),
        reason=reason,
        options=options,
        payload=payload,
        result=None if is_result_over else result,
        errors=read_errors(step.db, key),
        progress=progress if has_progress else None,
        progress_text=progress_text if has_progress else "",
        put_back=None if state in TERMINAL else read_put_back(put_back, failures + stalls),
        max_stalls=max_stalls,
        keep_ms=keep_ms,
        has_next=next_update != "",
        on_failed=on_failed or "",
        gates=gates or "",
        parked=parked or "",
        slots=slots,
    )

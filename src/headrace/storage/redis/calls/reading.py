"""The arguments and replies of what reads jobs back: how they ended, and all that is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from headrace.job import (
    DEFAULT_KEEP_MS,
    DEFAULT_LANE,
    DEFAULT_MAX_STALLS,
    DEFAULT_PRIORITY,
    ErrorInfo,
    JobRecord,
    JobState,
)
from headrace.storage.exports import ExportPage, export_cursor, not_a_cursor, place_behind
from headrace.storage.limits import EXPORT_PAGE_LIMIT
from headrace.storage.redis import keys
from headrace.storage.redis.calls.call import (
    Call,
    place_text,
    read_error,
    read_number,
    read_owner,
    read_place,
    text,
)
from headrace.storage.values import End


def outcomes(root: str, job_ids: Sequence[str]) -> Call[list[End]]:
    """Build ``outcomes``."""
    queue = keys.queue_of(root)

    def read(reply: list[bytes]) -> list[End]:
        rows = zip(job_ids, reply[::2], reply[1::2], strict=True)
        return [_end(queue, job_id, word, body) for job_id, word, body in rows]

    return Call("outcomes", root, job_ids, read)


def _end(queue: str, job_id: str, word: bytes, body: bytes) -> End:
    if word == b"completed":
        return End(queue, job_id, JobState.COMPLETED, result=body)
    state, _, reason = text(word).partition(" ")
    if state == JobState.COMPLETED:
        return End(queue, job_id, JobState.COMPLETED, is_cut=reason == "cut")
    return End(
        queue=queue,
        id=job_id,
        state=JobState(state) if state else None,
        reason=reason,
        error=read_error(body) if body else None,
    )


def get(root: str, job_id: str) -> Call[JobRecord | None]:
    """Build ``get``."""

    def read(reply: list[Any]) -> JobRecord | None:
        return read_record(keys.queue_of(root), reply) if reply else None

    return Call("get", root, [job_id], read)


def export(root: str, state: JobState, cursor: str, limit: int) -> Call[ExportPage]:
    """Build ``export``.

    Raises:
        InvalidOption: no page of such an export has given out this cursor.
    """
    queue = keys.queue_of(root)
    behind = read_place(place_behind(cursor, queue, state))
    if behind is None:
        raise not_a_cursor(cursor, queue, state)

    def read(reply: list[Any]) -> ExportPage:
        place, has_more, *found = reply
        return ExportPage(
            records=[read_record(queue, words) for words in found],
            cursor=export_cursor(queue, state, place_text(place)) or cursor,
            has_more=has_more == b"1",
        )

    words = (state.value, behind, min(limit, EXPORT_PAGE_LIMIT))
    return Call("export", root, words, read)


def read_record(queue: str, words: list[Any]) -> JobRecord:
    """Read what ``reading.words`` in Lua returns."""
    job_id, due, payload, result, errors, flat, state, changed, created, run, epoch, nonce = words
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    its_state = JobState(state.decode())
    its_result = fields.get(b"result", result) if its_state is JobState.COMPLETED else None
    progress, progress_text = _progress(fields, epoch)
    return JobRecord(
        id=text(job_id),
        queue=queue,
        task=text(fields.get(b"task")),
        state=its_state,
        priority=read_number(fields.get(b"tier"), DEFAULT_PRIORITY),
        lane=text(fields.get(b"lane")) or DEFAULT_LANE,
        failures=read_number(fields.get(b"failures")),
        stalls=read_number(fields.get(b"stalls")),
        starts=read_number(epoch),
        created_ms=read_number(created),
        changed_ms=read_number(changed or created),
        due_ms=read_number(due),
        expires_ms=read_number(fields.get(b"expires_at_ms")),
        run_ms=read_number(run),
        incarnation=read_owner(nonce),
        cancel_requested=b"cancel" in fields,
        reason=text(fields.get(b"reason")),
        options=fields.get(b"options", b""),
        payload=fields.get(b"payload", payload),
        result=its_result,
        errors=[read_error(entry) for entry in errors],
        progress=progress,
        progress_text=progress_text,
        put_back=None if its_state.is_terminal else _put_back(fields),
        max_stalls=read_number(fields.get(b"max_stalls"), DEFAULT_MAX_STALLS),
        keep_ms=read_number(fields.get(b"keep_ms"), DEFAULT_KEEP_MS),
        has_next=its_state is JobState.ACTIVE and b"next" in fields,
        on_failed=text(fields.get(b"on_failed")),
        gates=text(fields.get(b"gates")),
        parked=text(fields.get(b"parked")),
        slots=read_number(fields.get(b"slots"), 1),
    )


def _progress(fields: dict[bytes, bytes], epoch: bytes) -> tuple[float | None, str]:
    """Return what the last attempt said; an earlier one's progress is no more of interest."""
    its_epoch, _, said = fields.get(b"progress", b"").partition(b"\t")
    if not said or its_epoch != epoch:
        return None, ""
    fraction, _, words = said.partition(b"\t")
    try:
        return float(fraction), text(words)
    except ValueError:
        return None, ""


def _put_back(fields: dict[bytes, bytes]) -> ErrorInfo | None:
    """Return why the job was put back, as ``record.put_back`` in Lua reads it."""
    parts = fields.get(b"put_back", b"").split(b"\t", 3)
    charged = read_number(fields.get(b"failures")) + read_number(fields.get(b"stalls"))
    if len(parts) < 4:
        return None
    first_ms = read_number(parts[0], -1)
    if first_ms < 0 or read_number(parts[1], -1) != charged:
        return None
    return msgspec.structs.replace(read_error(parts[3]), at_ms=first_ms)

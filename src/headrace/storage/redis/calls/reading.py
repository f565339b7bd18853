"""The arguments and replies of what reads jobs back: how they ended, and all that is kept."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headrace.job import DEFAULT_LANE, DEFAULT_PRIORITY, ErrorInfo, JobRecord, JobState
from headrace.storage.redis import keys
from headrace.storage.redis.calls.call import Call, read_error, read_number, read_owner, text
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

    def read(reply: list[bytes]) -> JobRecord | None:
        return _record(keys.queue_of(root), job_id, reply) if reply else None

    return Call("get", root, [job_id], read)


def _progress(fields: dict[bytes, bytes]) -> tuple[float | None, str]:
    """Return what the last attempt said; an earlier one's progress is no more of interest."""
    epoch, _, said = fields.get(b"progress", b"").partition(b"\t")
    if not said or epoch != fields.get(b"epoch"):
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
    if JobState(fields[b"state"].decode()).is_terminal or len(parts) < 4:
        return None
    first_ms = read_number(parts[0], -1)
    if first_ms < 0 or read_number(parts[1], -1) != charged:
        return None
    return msgspec.structs.replace(read_error(parts[3]), at_ms=first_ms)


def _record(queue: str, job_id: str, reply: list[bytes]) -> JobRecord:
    has_payload, payload, has_result, result = reply[1:5]
    first_field = 6 + int(reply[5])
    flat = reply[first_field:]
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    progress, progress_text = _progress(fields)
    return JobRecord(
        id=job_id,
        queue=queue,
        task=text(fields.get(b"task")),
        state=JobState(fields[b"state"].decode()),
        priority=read_number(fields.get(b"tier"), DEFAULT_PRIORITY),
        lane=text(fields.get(b"lane")) or DEFAULT_LANE,
        failures=read_number(fields.get(b"failures")),
        stalls=read_number(fields.get(b"stalls")),
        starts=read_number(fields.get(b"epoch")),
        created_ms=read_number(fields.get(b"created_ms")),
        changed_ms=read_number(fields.get(b"at_ms") or fields.get(b"created_ms")),
        due_ms=read_number(reply[0]),
        expires_ms=read_number(fields.get(b"expires_at_ms")),
        run_ms=read_number(fields.get(b"run_ms")),
        incarnation=read_owner(fields.get(b"nonce", b"")),
        cancel_requested=b"cancel" in fields,
        reason=text(fields.get(b"reason")),
        options=fields.get(b"options", b""),
        payload=payload if has_payload == b"1" else None,
        result=result if has_result == b"1" else None,
        errors=[read_error(entry) for entry in reply[6:first_field]],
        progress=progress,
        progress_text=progress_text,
        put_back=_put_back(fields),
    )

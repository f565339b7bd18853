"""The arguments and replies of what reads jobs back: how they ended, and all that is kept."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.job import JobState
from headrace.storage.redis import keys
from headrace.storage.redis.calls.call import Call, read_error, text
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

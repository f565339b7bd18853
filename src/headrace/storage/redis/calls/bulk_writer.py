"""The arguments and replies of what writes many jobs, all or none."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from headrace.request import JobRequest
from headrace.storage.redis.calls.call import Call, Word
from headrace.storage.redis.calls.packing import pack
from headrace.storage.redis.calls.producer import add_jobs
from headrace.storage.values import CommitOutcome, StageInfo, WriteInfo


def stage(
    root: str,
    write_id: str,
    token: str,
    jobs: Sequence[JobRequest],
    *,
    before: int,
    ttl_ms: int,
) -> Call[int]:
    """Build ``stage``."""
    words: list[Word] = []
    add_jobs(words, [_with_own_id(job) for job in jobs])
    packed = [pack(words)] if words else []
    return Call("stage", root, [write_id, token, before, ttl_ms, *packed], int)


def _with_own_id(job: JobRequest) -> JobRequest:
    """Have an id looked for that was just drawn: when it is published it may be there already."""
    return replace(job, is_new_id=False) if job.is_new_id else job


def commit(
    root: str, write_id: str, stages: Sequence[StageInfo], batch: int, keep_ms: int
) -> Call[CommitOutcome]:
    """Build ``commit``."""
    words: list[Word] = [write_id, batch, keep_ms]
    for info in stages:
        words += (info.token, info.length, info.jobs)
    return Call("commit", root, words, lambda reply: CommitOutcome(reply.decode()))


def publish(root: str) -> Call[int]:
    """Build ``publish``."""
    return Call("publish", root, [], int)


def discard(root: str, write_id: str, tokens: Sequence[str]) -> Call[int]:
    """Build ``discard``."""
    return Call("discard", root, [write_id, *tokens], int)


def read_write(root: str, write_id: str) -> Call[WriteInfo | None]:
    """Build ``read_write``."""

    def read(reply: list[int]) -> WriteInfo | None:
        if not reply:
            return None
        batch, left, jobs, added = reply
        return WriteInfo(id=write_id, batch=batch, stages_left=left, jobs=jobs, added=added)

    return Call("read_write", root, [write_id], read)

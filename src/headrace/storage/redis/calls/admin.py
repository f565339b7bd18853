"""The arguments and replies of what steers queues."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headrace.job import JobState
from headrace.storage.redis.calls.call import Call, nothing
from headrace.storage.values import QueueSettings


def pause(root: str) -> Call[None]:
    """Build ``pause``."""
    return Call("pause", root, (), nothing)


def resume(root: str) -> Call[None]:
    """Build ``resume``."""
    return Call("resume", root, (), nothing)


def configure(root: str, settings: QueueSettings) -> Call[None]:
    """Build ``configure``."""
    words = [word for pair in msgspec.structs.asdict(settings).items() for word in pair]
    return Call("configure", root, words, nothing)


def redrive(root: str, job_ids: Sequence[str]) -> Call[int]:
    """Build ``redrive``."""
    return Call("redrive", root, job_ids, int)


def purge(root: str, state: JobState, job_ids: Sequence[str]) -> Call[int]:
    """Build ``purge``."""
    return Call("purge", root, [state.value, *job_ids], int)

"""The arguments and replies of what steers queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import msgspec

from headrace.job import JobState
from headrace.storage.queues import SettingChanges
from headrace.storage.readers import read_stream_id
from headrace.storage.redis import keys
from headrace.storage.redis.calls.call import Call, Word, command, nothing
from headrace.storage.redis.calls.maintenance import PAGE

_LAST = "9" * 19
"""Behind all entries of a millisecond."""


class Deleted(msgspec.Struct, frozen=True):
    """What a step of ``delete_queue`` came to.

    Attributes:
        left: how much is left for another one; None: the queue is used.
        has_gates: gates without jobs may be left, and nobody in the queue knows of them.
    """

    left: int | None
    has_gates: bool = False


def pause(root: str) -> Call[None]:
    """Build ``pause``."""
    return Call("pause", root, (), nothing)


def resume(root: str) -> Call[None]:
    """Build ``resume``."""
    return Call("resume", root, (), nothing)


def configure(root: str, **changes: Unpack[SettingChanges]) -> Call[None]:
    """Build ``configure``."""
    said: dict[str, Any] = {**changes}
    words: list[Word] = [word for change in said.items() for word in change]
    return Call("configure", root, words, nothing)


def acknowledge(root: str, reader: str, stream_id: str, number: int) -> Call[None]:
    """Build ``acknowledge``.

    Raises:
        InvalidOption: that is no id of an entry.
    """
    at_ms, seq = read_stream_id(stream_id)
    before = f"{at_ms}-{seq - 1}" if seq else f"{max(at_ms - 1, 0)}-{_LAST if at_ms else 0}"
    return Call("acknowledge", root, [reader, f"{at_ms}-{seq}", before, number], nothing)


def forget_reader(root: str, reader: str) -> Call[bool]:
    """Build ``forget_reader``."""
    return Call("forget_reader", root, [reader], bool)


def delete_queue(root: str, *, is_forced: bool) -> Call[Deleted]:
    """Build ``delete_queue``."""
    return Call("delete_queue", root, [int(is_forced)], _read_deleted)


def _read_deleted(reply: Any) -> Deleted:
    if reply == b"used":
        return Deleted(None)
    return Deleted(0, has_gates=True) if reply == b"gates" else Deleted(reply)


def gates_of(root: str, cursor: bytes) -> Call[tuple[bytes, list[bytes]]]:
    """Build a step through the gates of a queue: the next cursor, 0 at the end, and some keys."""
    words: tuple[Word, ...] = ("SCAN", cursor, "MATCH", f"{root}:gate:*", "COUNT", PAGE)
    return command("delete_queue", root, *words, read=tuple)


def forget_gates(root: str, found: Sequence[bytes]) -> Call[None]:
    """Build what forgets gates of a deleted queue, by their keys."""
    first = len(f"{root}:gate:")
    return Call("forget_gates", root, [key[first:] for key in found], nothing)


def strike(tenant: str, queue: str) -> Call[None]:
    """Build what takes a queue off the tenant's list, which is in another slot than the queue."""
    root = keys.tenant_root(tenant)
    return command("delete_queue", root, "SREM", keys.queues(tenant), queue, read=nothing)


def redrive(root: str, job_ids: Sequence[str]) -> Call[int]:
    """Build ``redrive``."""
    return Call("redrive", root, job_ids, int)


def purge(root: str, state: JobState, job_ids: Sequence[str]) -> Call[int]:
    """Build ``purge``."""
    return Call("purge", root, [state.value, *job_ids], int)

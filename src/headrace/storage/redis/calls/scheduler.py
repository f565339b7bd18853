"""The arguments and replies of what keeps schedules, and fires their occurrences.

The key of all but ``fire`` is `keys.schedules`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from headrace.errors import InvalidOption
from headrace.job import EnqueueOutcome, outcome_of
from headrace.storage.limits import SCHEDULE_HISTORY, SCHEDULES_PAGE_LIMIT
from headrace.storage.redis.calls.call import Call, Word, nothing, text
from headrace.storage.redis.calls.producer import add_job, read_verdicts
from headrace.storage.schedules import (
    Occurrence,
    ReleaseStanding,
    SchedulePage,
    ScheduleRead,
    ScheduleWrite,
    StoredSchedule,
    TakenSchedules,
)

SCHEDULE_WIDTH = 5

# An id, or in hexadecimal behind a % one that is no text or begins with a %.
_CURSOR = re.compile(r"(?!%)[^\ud800-\udfff]*|%(?:[0-9a-f]{2})+", re.ASCII | re.DOTALL)


def read_schedules(key: str, ids: Sequence[str]) -> Call[ScheduleRead]:
    """Build ``read_schedules``."""

    def read(reply: list[bytes]) -> ScheduleRead:
        return ScheduleRead(int(reply[0]), _schedules(reply))

    return Call("read_schedules", key, ids, read)


def list_schedules(key: str, app: str | None, cursor: str, limit: int) -> Call[SchedulePage]:
    """Build ``list_schedules``.

    Raises:
        InvalidOption: no page of schedules has given out this cursor.
    """
    if not _CURSOR.fullmatch(cursor):
        raise InvalidOption(f"cursor={cursor!r} is not one of a page of schedules")
    behind = bytes.fromhex(cursor[1:]) if cursor.startswith("%") else cursor

    def read(reply: list[bytes]) -> SchedulePage:
        return SchedulePage(int(reply[0]), _schedules(reply), _cursor(reply[1]))

    words: list[Word] = [behind, min(limit, SCHEDULES_PAGE_LIMIT)]
    return Call("list_schedules", key, words if app is None else [*words, app], read)


def _cursor(last: bytes) -> str:
    with suppress(UnicodeDecodeError):
        if not last.startswith(b"%"):
            return last.decode()
    return f"%{last.hex()}"


def schedule_history(key: str, schedule_id: str) -> Call[list[bytes]]:
    """Build ``schedule_history``."""
    return Call("schedule_history", key, [schedule_id], list)


def write_schedules(
    key: str, writes: Sequence[ScheduleWrite], *, wakes: bool
) -> Call[list[int | None]]:
    """Build ``write_schedules``, or its twin that is not refused when memory is full."""
    words: list[Word] = [int(wakes)]
    for write in writes:
        said = _put_words(write)
        words += (write.id, write.expected, len(said), *said)
    grows = any(write.expected == 0 and write.body is not None for write in writes)
    return Call("write_schedules" if grows else "change_schedules", key, words, _read_versions)


def _put_words(write: ScheduleWrite) -> list[Word]:
    if write.body is None:
        return []
    history = write.history[-SCHEDULE_HISTORY:]
    return [write.app, write.due_ms, write.first_version, write.body, *history]


def _read_versions(reply: bytes) -> list[int | None]:
    return [None if word == b"-" else int(word) for word in reply.split()]


def take_schedules(key: str, limit: int, hold_ms: int, channel: str) -> Call[TakenSchedules]:
    """Build ``take_schedules``."""

    def read(reply: list[bytes]) -> TakenSchedules:
        next_ms = int(reply[1]) if reply[1] else None
        return TakenSchedules(int(reply[0]), _schedules(reply), next_ms)

    return Call("take_schedules", key, [limit, hold_ms, channel], read)


def fire(
    root: str, occurrences: Sequence[Occurrence], until_ms: int
) -> Call[list[EnqueueOutcome] | None]:
    """Build ``fire``."""
    words: list[Word] = [until_ms, len(occurrences)]
    for occurrence in occurrences:
        words += (occurrence.schedule_id, occurrence.instant_ms)
    for occurrence in occurrences:
        add_job(words, occurrence.job)  # each by itself, for not all of them may be stored

    def read(reply: bytes) -> list[EnqueueOutcome] | None:
        return None if reply == b"late" else [outcome_of(said) for said in read_verdicts(reply)]

    return Call("fire", root, words, read)


def join_release(key: str, app: str, digest: str, alive_ms: int) -> Call[ReleaseStanding]:
    """Build ``join_release``."""

    def read(reply: list[bytes]) -> ReleaseStanding:
        is_newest, is_new = reply[0] == b"1", reply[1] == b"1"
        return ReleaseStanding(is_newest, sorted(text(word) for word in reply[2:]), is_new)

    return Call("join_release", key, [app, digest, alive_ms], read)


def leave_release(key: str, app: str, digest: str) -> Call[None]:
    """Build ``leave_release``."""
    return Call("leave_release", key, [app, digest], nothing)


def _schedules(reply: list[bytes]) -> list[StoredSchedule]:
    """Read the schedules of a reply that begins with the time and one more word."""
    rows = (reply[at : at + SCHEDULE_WIDTH] for at in range(2, len(reply), SCHEDULE_WIDTH))
    return [
        StoredSchedule(
            id=text(schedule_id),
            app=text(app),
            version=int(version),
            due_ms=int(due_ms),
            body=body,
        )
        for schedule_id, app, version, due_ms, body in rows
    ]

"""The lines in which every storage of ours keeps events.

Eight fields, a tab between two: kind, job id, task, start, incarnation, wait, run and detail. That
has parts of its own, by the kind, and again a tab between two: who splits a line at seven tabs at
most reads the lines of every release, since what a newer one adds stands behind the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from headrace.events import EventRecord, JobEventKind
from headrace.frames import innermost_frame
from headrace.job import ErrorInfo
from headrace.plain import one_line

_ERROR = ("error", "message", "frame")
_INCARNATION = ("worker", "host", "version", "app_version")
PARTS = {
    JobEventKind.QUEUED: ("detail",),
    JobEventKind.SCHEDULED: ("due_ms", "detail"),
    JobEventKind.UPDATED: ("due_ms",),
    JobEventKind.RETRYING: (*_ERROR, "due_ms"),
    JobEventKind.SNOOZED: ("detail", "due_ms"),
    JobEventKind.PUT_BACK: ("detail", "due_ms"),
    JobEventKind.STALLED: _ERROR,
    JobEventKind.COMPLETED: ("created_ms",),
    JobEventKind.FAILED: ("detail", *_ERROR, "created_ms"),
    JobEventKind.CANCELLED: ("detail", "created_ms"),
    JobEventKind.PURGED: ("detail", "created_ms"),
    JobEventKind.JOINED: _INCARNATION,
    JobEventKind.LEFT: ("detail", *_INCARNATION),
}
"""The parts of detail, as fields of `EventRecord`; of a kind that is not here it is one text."""

MOST_DIGITS = 15
"""Most digits of a number in a line, but for that of a start."""

MOST_START_DIGITS = 9
"""Most digits of the number of a start."""

LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999; no later instant is told."""

PART_LIMIT = 200
"""Most characters of an error's message in a line, and of the frame that raised it."""

NO_ERROR = "\t\t"
"""The words of no error."""


def words_of(*parts: str | int) -> str:
    """Return parts of a line, each in one line and without control characters."""
    return "\t".join([one_line(str(part)) for part in parts])


def error_words(error: ErrorInfo) -> str:
    """Return what a line says of an error: its type, and `PART_LIMIT` characters of the others."""
    frame = innermost_frame(error)
    if len(frame) > PART_LIMIT:
        frame = f"…{frame[1 - PART_LIMIT :]}"
    return words_of(error.type, error.message[:PART_LIMIT], frame)


def read_lines(lines: str, *, stream_id: str, at_ms: int, last: int) -> Iterator[EventRecord]:
    """Read the events of one stream entry, a line each.

    A line that can't be read, or of a kind that a newer release writes, is passed over; its number
    is not given to another. Parts that an older release did not write are empty.

    Args:
        lines: the entry's.
        stream_id: of the entry.
        at_ms: when they happened.
        last: the number of the entry's last event, 0 where that is not known.
    """
    told = lines.split("\n")
    for number, line in enumerate(told, last - len(told) + 1):
        with suppress(ValueError):
            yield _read_line(line, stream_id, at_ms, max(number, 0))


def _read_line(line: str, stream_id: str, at_ms: int, number: int) -> EventRecord:
    kind, job_id, task, start, incarnation, wait, run, detail = line.split("\t", 7)
    kind = JobEventKind(kind)
    parts = _read_parts(kind, detail)
    return EventRecord(
        stream_id=stream_id,
        number=number,
        at_ms=at_ms,
        kind=kind,
        job_id=job_id,
        task=task,
        start=_count(start, MOST_START_DIGITS),
        incarnation=incarnation,
        wait_ms=_count(wait, MOST_DIGITS),
        run_ms=_count(run, MOST_DIGITS),
        **parts,
    )


def _read_parts(kind: JobEventKind, detail: str) -> dict[str, Any]:
    names = PARTS.get(kind)
    if names is None:
        return {"detail": detail}
    parts: dict[str, Any] = dict(zip(names, detail.split("\t"), strict=False))
    for name in ("due_ms", "created_ms"):
        if name in parts:
            parts[name] = _ms(parts[name])
    parts.setdefault("detail", parts.get("error", ""))
    return parts


def _count(word: str, most_digits: int) -> int:
    if not word:
        return 0
    if not _is_number(word, most_digits):
        raise ValueError(word)
    return int(word)


def _ms(word: str) -> int:
    instant = int(word) if _is_number(word, MOST_DIGITS) else 0
    return instant if instant <= LAST_MS else 0


def _is_number(word: str, most_digits: int) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= most_digits

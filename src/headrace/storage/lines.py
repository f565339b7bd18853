"""Reads the lines in which every storage of ours keeps job events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from headrace.events import EventRecord, JobEventKind


def read_lines(lines: str, *, stream_id: str, at_ms: int) -> Iterator[EventRecord]:
    """Read the events of one stream entry: a line each, tab-separated, on every storage.

    A line that can't be read is passed over.
    """
    for line in lines.split("\n"):
        with suppress(ValueError):
            yield _read_line(line, stream_id, at_ms)


def _read_line(line: str, stream_id: str, at_ms: int) -> EventRecord:
    kind, job_id, task, start, incarnation, wait, run, detail = line.split("\t", 7)
    return EventRecord(
        stream_id=stream_id,
        at_ms=at_ms,
        kind=JobEventKind(kind),
        job_id=job_id,
        task=task,
        start=int(start or 0),
        incarnation=incarnation,
        wait_ms=int(wait or 0),
        run_ms=int(run or 0),
        detail=detail,
    )

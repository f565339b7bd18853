"""Ended jobs as they are read back, page by page, and the cursors between the pages."""

from __future__ import annotations

import msgspec

from headrace.errors import InvalidOption
from headrace.job import JobRecord, JobState
from headrace.plain import plain_text, shown

EXPORTED = tuple(state for state in JobState if state.is_terminal)
"""The states whose jobs can be exported."""


class ExportPage(msgspec.Struct, frozen=True):
    """Some ended jobs with all that is kept of them, in the order of their ends.

    Attributes:
        records: the jobs.
        cursor: where to go on, now or later; "" where nothing has ended yet.
        has_more: it stopped at a bound, and there may be more by now. A page may then be empty.
    """

    records: list[JobRecord]
    cursor: str
    has_more: bool


def export_cursor(queue: str, state: JobState, place: str) -> str:
    """Return the cursor of a place in an export of a queue; "" of no place."""
    return f"{state.value}:{queue}:{place}" if place else ""


def cursor_behind(record: JobRecord) -> str:
    """Return the cursor that goes on behind a job of an export."""
    return export_cursor(record.queue, record.state, f"{record.changed_ms}:{record.id}")


def place_behind(cursor: str, queue: str, state: JobState) -> str:
    """Return the place that a cursor of such an export names, "" for "".

    Raises:
        InvalidOption: the state is no terminal one, or the cursor is another export's.
    """
    if state not in EXPORTED:
        known = ", ".join(EXPORTED)
        raise InvalidOption(f"{state.value} jobs can't be exported: use one of {known}")
    said = plain_text(cursor)
    prefix = f"{state.value}:{queue}:"
    if said is None or (said and (not said.startswith(prefix) or said == prefix)):
        raise not_a_cursor(cursor, queue, state)
    return said.removeprefix(prefix)


def not_a_cursor(cursor: object, queue: str, state: JobState) -> InvalidOption:
    """Return the error of a cursor that no page of an export has given out."""
    return InvalidOption(
        f"cursor={shown(cursor)} is not one of an export of {state.value} jobs of queue "
        f"{queue!r}: use that of the last job that it gave, or begin without one"
    )

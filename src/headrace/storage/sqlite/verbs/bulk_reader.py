"""What pipelines read: ``event_lines``, ``event_span``, ``event_place``."""

from __future__ import annotations

from headrace.storage.event_pages import EventLines, EventPlace, EventSpan
from headrace.storage.sqlite import events as stream
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.unit import find_unit


def event_lines(step: Step, name: QueueName, seen: int, last: int, limit: int) -> list[EventLines]:
    """Return the entries after one and up to one."""
    unit = find_unit(step, name)
    return stream.read_entries(step.db, unit.key, seen, last, limit) if unit else []


def event_span(step: Step, name: QueueName) -> EventSpan:
    """Return the first and the last entry."""
    unit = find_unit(step, name)
    return stream.span(step.db, unit.key) if unit else EventSpan(None, None)


def event_place(step: Step, name: QueueName, at_ms: int) -> EventPlace | None:
    """Return the last entry that is no later than an instant."""
    unit = find_unit(step, name)
    return stream.place_at(step.db, unit.key, unit.last_entry, at_ms) if unit else None

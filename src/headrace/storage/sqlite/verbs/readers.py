"""Who reads a queue's events, and how far: ``acknowledge``, ``forget_reader``, ``readers``."""

from __future__ import annotations

from headrace.storage.readers import ReaderInfo
from headrace.storage.sqlite import readers as known
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.unit import find_unit, list_queue, open_unit

_READERS = """
SELECT name, entry, entry_ms, number, at_ms FROM readers WHERE queue = ? ORDER BY name
"""


def acknowledge(step: Step, name: QueueName, reader: str, entry: int, number: int) -> None:
    """Note how far a reader has come."""
    unit = open_unit(step, name)
    list_queue(unit)
    known.acknowledge(unit, reader, entry, number)


def forget_reader(step: Step, name: QueueName, reader: str) -> bool:
    """Drop a reader."""
    unit = find_unit(step, name)
    return unit is not None and known.forget(unit, reader)


def readers(step: Step, name: QueueName) -> list[ReaderInfo]:
    """Return the readers, by name."""
    unit = find_unit(step, name)
    if unit is None:
        return []
    return [
        ReaderInfo(
            name=reader,
            stream_id=f"{entry_ms}-{entry}",
            number=number,
            behind=max(0, unit.told - number),
            at_ms=at_ms,
        )
        for reader, entry, entry_ms, number, at_ms in step.db.execute(_READERS, (unit.key,))
    ]

"""What steers limits and shows them: the verbs of `Limiter`."""

from __future__ import annotations

from headrace.limit import Terms
from headrace.storage.gates import GateInfo, LimitInfo
from headrace.storage.sqlite import lines, terms
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.unit import find_unit, list_queue, open_unit

_WAITING = "SELECT count(*) FROM jobs WHERE queue = ? AND parked = ?"


def set_limit(step: Step, name: QueueName, limit: str, said: Terms | None) -> None:
    """Set the terms of a limit, and open its gates."""
    unit = open_unit(step, name)
    list_queue(unit)
    if terms.set_terms(unit, limit, said):
        lines.follow(unit, [limit])
    lines.close(unit)


def limits(step: Step, name: QueueName) -> list[LimitInfo]:
    """Return the limits of a queue."""
    unit = find_unit(step, name)
    return terms.read_all(step.db, unit.key) if unit else []


def gate(step: Step, name: QueueName, limit: str, key: str) -> GateInfo:
    """Return how a gate stands."""
    unit = find_unit(step, name)
    if unit is None:
        return GateInfo(name=limit, key=key, terms=None, ready=0, active=0, blocked=0, tokens=0)
    found = unit.gates.gate(f"{limit}\t{key}")
    [blocked] = step.db.execute(_WAITING, (unit.key, found.name)).fetchone()
    return GateInfo(
        name=limit,
        key=key,
        terms=found.terms,
        ready=found.ready,
        active=found.active,
        blocked=blocked,
        tokens=found.bucket.tokens,
    )

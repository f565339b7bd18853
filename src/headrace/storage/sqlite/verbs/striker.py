"""What keeps jobs from being run: the verbs of `Striker`."""

from __future__ import annotations

from headrace.storage.sqlite import lines, strikes
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.unit import find_unit, list_queue, open_unit
from headrace.storage.values import StrikeList
from headrace.strike import Strike


def strike(step: Step, name: QueueName, said: Strike) -> None:
    """Set a strike."""
    unit = open_unit(step, name)
    strikes.put(unit, said)
    list_queue(unit)


def lift(step: Step, name: QueueName, strike_id: str) -> bool:
    """Lift a strike, and open its line."""
    unit = find_unit(step, name)
    if unit is None or not strikes.lift(unit, strike_id):
        return False
    lines.let_go(unit, strike_id)
    unit.wakes.all()
    lines.close(unit)
    return True


def read_strikes(step: Step, name: QueueName) -> StrikeList:
    """Return the strikes of a queue."""
    unit = find_unit(step, name)
    if unit is None:
        return StrikeList(0, [])
    return StrikeList(unit.strikes_version, strikes.read_all(step.db, unit.key))

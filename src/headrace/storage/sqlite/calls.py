"""The memory of a client's last calls of ``enqueue``, so that it may repeat one."""

from __future__ import annotations

from headrace.errors import StaleCall
from headrace.storage.limits import CALLS_TTL_MS
from headrace.storage.sqlite.unit import UnitOfWork
from headrace.storage.values import CallId

CALLS_REMEMBERED = 2

_RECALL = "SELECT number, answer, at_ms FROM calls WHERE queue = ? AND client = ? AND slot = ?"
_REMEMBER = """
INSERT INTO calls (queue, client, slot, number, answer, at_ms) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET number = excluded.number, answer = excluded.answer, at_ms = excluded.at_ms
"""
_FORGET = "DELETE FROM calls WHERE queue = ? AND at_ms <= ?"


class Memory:
    """What is remembered in one call's place.

    Args:
        unit: the call.
        call: its number.

    Attributes:
        answer: what the same call was answered the first time, None if it is new.

    Raises:
        StaleCall: a later one has taken its place.
    """

    def __init__(self, unit: UnitOfWork, call: CallId) -> None:
        self._unit = unit
        self._call = call
        self._slot = call.number % CALLS_REMEMBERED
        known = unit.db.execute(_RECALL, (unit.key, call.client, self._slot)).fetchone()
        self._is_first = known is None
        self.answer: str | None = None
        if known is not None and known[2] > unit.now_ms - CALLS_TTL_MS:
            if known[0] == call.number:
                self.answer = known[1]
            elif call.number < known[0]:
                raise StaleCall(f"enqueue call {call.number} is older than {known[0]}")

    def keep(self, answer: str) -> None:
        """Remember the answer."""
        unit, call = self._unit, self._call
        if self._is_first:
            forget(unit)
        values = (unit.key, call.client, self._slot, call.number, answer, unit.now_ms)
        unit.db.execute(_REMEMBER, values)


def forget(unit: UnitOfWork) -> None:
    """Forget the calls that will not be repeated any more."""
    unit.db.execute(_FORGET, (unit.key, unit.now_ms - CALLS_TTL_MS))

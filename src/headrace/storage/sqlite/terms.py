"""The terms of a queue's limits: what workers declare, and what an operator has set over that."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from headrace.limit import Terms, read_terms
from headrace.storage.gates import LimitInfo
from headrace.storage.sqlite.unit import UnitOfWork

_READ = "SELECT declared, operator FROM limits WHERE queue = ? AND name = ?"
_READ_ALL = "SELECT name, declared, operator FROM limits WHERE queue = ? ORDER BY name"
_WRITE = """
INSERT INTO limits (queue, name, declared, operator) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET declared = excluded.declared, operator = excluded.operator
"""
_FORGET = "DELETE FROM limits WHERE queue = ? AND name = ?"


def declare(unit: UnitOfWork, said: Mapping[str, str]) -> list[str]:
    """Note the terms that a worker declares, and return the limits that have new ones by that."""
    changed = []
    for name, text in said.items():
        declared, operator = _read(unit, name)
        if declared == text or read_terms(text) is None:
            continue
        unit.db.execute(_WRITE, (unit.key, name, text, operator))
        if not operator:
            changed.append(name)
    return changed


def set_terms(unit: UnitOfWork, name: str, terms: Terms | None) -> bool:
    """Note what an operator sets, None for nothing; return whether the limit has new terms."""
    text = "" if terms is None else terms.text
    declared, operator = _read(unit, name)
    if text or declared:
        unit.db.execute(_WRITE, (unit.key, name, declared, text))
    else:
        unit.db.execute(_FORGET, (unit.key, name))
    return (text or declared) != (operator or declared)


def read_all(db: sqlite3.Connection, queue: int) -> list[LimitInfo]:
    """Return the limits of a queue, by name."""
    return [
        LimitInfo(name=name, declared=read_terms(declared), set=read_terms(operator))
        for name, declared, operator in db.execute(_READ_ALL, (queue,)).fetchall()
    ]


def _read(unit: UnitOfWork, name: str) -> tuple[str, str]:
    row = unit.db.execute(_READ, (unit.key, name)).fetchone()
    return ("", "") if row is None else (row[0], row[1])

"""Incarnations as the verbs see them: who may claim, and what each holds."""

from __future__ import annotations

import msgspec

from headrace.storage.sqlite.record import Record, load
from headrace.storage.sqlite.unit import UnitOfWork

_FIND = """
SELECT key, claim, settle, settled, last_chance FROM incarnations
WHERE queue = ? AND name = ? AND NOT is_condemned
"""


class Claimant(msgspec.Struct):
    """One that may claim, and the last numbers of its calls."""

    key: int
    claim: int
    settle: int
    settled: str
    last_chance: int | None


def find(unit: UnitOfWork, incarnation: str) -> Claimant | None:
    """Return an incarnation, None for an unknown or condemned one."""
    row = unit.db.execute(_FIND, (unit.key, incarnation)).fetchone()
    return None if row is None else Claimant(*row)


def key_of(unit: UnitOfWork, incarnation: str) -> int | None:
    """Return the key of one that is listed, condemned or not."""
    sql = "SELECT key FROM incarnations WHERE queue = ? AND name = ?"
    row = unit.db.execute(sql, (unit.key, incarnation)).fetchone()
    return None if row is None else row[0]


def owned(unit: UnitOfWork, owner: int | None, limit: int) -> list[Record]:
    """Return some of the jobs that an incarnation has claimed."""
    sql = "SELECT id FROM jobs WHERE owner = ? LIMIT ?"
    ids = [row[0] for row in unit.db.execute(sql, (owner, limit)).fetchall()]
    return list(load(unit, ids).values()) if ids else []


def count_owned(unit: UnitOfWork, owner: int | None) -> int:
    """Return how many jobs an incarnation has claimed."""
    sql = "SELECT count(*) FROM jobs WHERE owner = ?"
    return int(unit.db.execute(sql, (owner,)).fetchone()[0])


def channel_of(unit: UnitOfWork, incarnation: str) -> str:
    """Return the inbox of an incarnation, "" without one."""
    sql = "SELECT channel FROM incarnations WHERE queue = ? AND name = ?"
    row = unit.db.execute(sql, (unit.key, incarnation)).fetchone()
    return row[0] if row else ""

"""Incarnations: who may claim, the last numbers of their calls, and what each holds."""

from __future__ import annotations

import msgspec

from headrace.storage.incarnations import IncarnationInfo, read_info
from headrace.storage.lines import words_of
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.record import Record, load
from headrace.storage.sqlite.unit import UnitOfWork

_FIND = """
SELECT key, claim, settle, settled, last_chance FROM incarnations
WHERE queue = ? AND name = ? AND NOT is_condemned
"""


_REGISTER = """
INSERT INTO incarnations (queue, name, info, channel, lease_ms, registered_ms, beat_ms)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET info = excluded.info, channel = excluded.channel,
  lease_ms = excluded.lease_ms, registered_ms = excluded.registered_ms, beat_ms = excluded.beat_ms,
  beat = 0, is_condemned = 0
"""
_BEAT = """
UPDATE incarnations SET beat = beat + 1, beat_ms = ?
WHERE queue = (SELECT key FROM queues WHERE tenant = ? AND name = ?) AND name = ?
  AND NOT is_condemned
RETURNING key
"""
# For good: every later call of it answers gone, and its numbers end with it.
_CONDEMN = """
UPDATE incarnations SET is_condemned = 1, claim = 0, settle = 0, settled = '', last_chance = NULL,
  info = x'', channel = ''
WHERE key = ?
"""
_CLAIMED = "UPDATE incarnations SET claim = ? WHERE key = ?"
_SETTLED = "UPDATE incarnations SET settle = ?, settled = ? WHERE key = ?"
_LAST_CHANCE = "UPDATE incarnations SET last_chance = ? WHERE key = ?"


class Claimant(msgspec.Struct):
    """One that may claim, and the last numbers of its calls."""

    key: int
    claim: int
    settle: int
    settled: str
    last_chance: int | None


def register(unit: UnitOfWork, worker: IncarnationInfo) -> None:
    """Make an incarnation known."""
    if find(unit, worker.incarnation) is None:
        _note(unit, "joined", worker.incarnation, _who(worker))
    unit.db.execute(
        _REGISTER,
        (
            unit.key,
            worker.incarnation,
            msgspec.json.encode(worker),
            worker.channel,
            worker.lease_ms,
            unit.now_ms,
            unit.now_ms,
        ),
    )


def note_left(unit: UnitOfWork, incarnation: str, why: str) -> None:
    """Tell why an incarnation has left, unless it is unknown or condemned."""
    sql = "SELECT info FROM incarnations WHERE queue = ? AND name = ? AND NOT is_condemned"
    row = unit.db.execute(sql, (unit.key, incarnation)).fetchone()
    if row is not None:
        info = read_info(incarnation, row[0])
        _note(unit, "left", incarnation, f"{why}\t{_who(info)}")


def _note(unit: UnitOfWork, kind: str, incarnation: str, detail: str) -> None:
    unit.events.add(kind, incarnation, "", worker=incarnation, detail=detail)


def _who(worker: IncarnationInfo) -> str:
    return words_of(worker.name, worker.host, worker.version, worker.app_version)


def beat(step: Step, name: QueueName, incarnation: str) -> int | None:
    """Count a beat; return the key of who beat, None of an unknown or condemned one."""
    row = step.db.execute(_BEAT, (step.now_ms, *name, incarnation)).fetchone()
    return None if row is None else row[0]


def note_claim(unit: UnitOfWork, me: Claimant, number: int) -> None:
    """Remember the number of a claim."""
    unit.db.execute(_CLAIMED, (number, me.key))


def note_settle(unit: UnitOfWork, me: Claimant, number: int, settled: str) -> None:
    """Remember the number of a call of ``settle``, and its answer."""
    unit.db.execute(_SETTLED, (number, settled, me.key))


def note_last_chance(unit: UnitOfWork, me: Claimant, job: int) -> None:
    """Remember which job an incarnation has that one more death would end."""
    unit.db.execute(_LAST_CHANCE, (job, me.key))


def condemn(unit: UnitOfWork, key: int) -> None:
    """Let an incarnation do nothing more."""
    unit.db.execute(_CONDEMN, (key,))


def forget(unit: UnitOfWork, key: int | None) -> None:
    """Take an incarnation off the list."""
    unit.db.execute("DELETE FROM incarnations WHERE key = ?", (key,))


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
    """Return the channel of an incarnation, "" without one."""
    sql = "SELECT channel FROM incarnations WHERE queue = ? AND name = ?"
    row = unit.db.execute(sql, (unit.key, incarnation)).fetchone()
    return row[0] if row else ""

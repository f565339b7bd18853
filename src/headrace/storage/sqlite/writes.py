"""The writes that are committed: how far each has come, and what it brought in."""

from __future__ import annotations

import msgspec

from headrace.storage.limits import PRUNED_A_CALL
from headrace.storage.sqlite.unit import UnitOfWork

_COLUMNS = "batch, stages_left, jobs, added, keep_ms"
_FIND = f"""
SELECT {_COLUMNS} FROM writes
WHERE queue = ? AND id = ? AND (purge_at_ms IS NULL OR purge_at_ms > ?)
"""  # noqa: S608
_KEEP = f"""
INSERT INTO writes (queue, id, {_COLUMNS}, purge_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (queue, id) DO UPDATE SET batch = excluded.batch, stages_left = excluded.stages_left,
  jobs = excluded.jobs, added = excluded.added, keep_ms = excluded.keep_ms,
  purge_at_ms = excluded.purge_at_ms
"""  # noqa: S608
_FORGET_UNPUBLISHED = "DELETE FROM writes WHERE queue = ? AND purge_at_ms IS NULL"
_FORGET_OVER = """
DELETE FROM writes WHERE key IN (
  SELECT key FROM writes WHERE queue = ? AND purge_at_ms <= ? LIMIT ?
)
"""


class Write(msgspec.Struct):
    """A write with what was committed under its id, all batches together.

    Attributes:
        batch: the last one that was committed.
        stages_left: how many stages of it are not wholly published.
        jobs: how many were staged.
        added: how many of them were stored so far; the others were there.
        keep_ms: how long it is remembered once all is published.
    """

    batch: int
    stages_left: int
    jobs: int
    added: int
    keep_ms: int


def find(unit: UnitOfWork, write_id: str) -> Write | None:
    """Return a write that is there."""
    row = unit.db.execute(_FIND, (unit.key, write_id, unit.now_ms)).fetchone()
    return None if row is None else Write(*row)


def keep(unit: UnitOfWork, write_id: str, write: Write) -> None:
    """Write how a write stands; with no stage left its time begins to run."""
    purge_at_ms = None if write.stages_left else unit.now_ms + write.keep_ms
    values = msgspec.structs.astuple(write)
    unit.db.execute(_KEEP, (unit.key, write_id, *values, purge_at_ms))


def forget_unpublished(unit: UnitOfWork) -> None:
    """Forget those of which something is left to publish."""
    unit.db.execute(_FORGET_UNPUBLISHED, (unit.key,))


def forget_over(unit: UnitOfWork) -> int:
    """Forget some of those whose time is over; return how many."""
    return unit.db.execute(_FORGET_OVER, (unit.key, unit.now_ms, PRUNED_A_CALL)).rowcount

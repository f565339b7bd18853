"""What writers have laid down for a write and is no job yet, in chunks of a call each.

A stage whose time is over is as if it had never been; its chunks are erased a few at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from headrace.request import JobRequest, asked
from headrace.storage.sqlite.unit import UnitOfWork

ERASED_A_CALL = 20
"""Chunks that one call erases, of 4 MiB each at most."""

_FIND = """
SELECT key, jobs, place IS NOT NULL FROM stages
WHERE queue = ? AND write_id = ? AND token = ? AND (purge_at_ms IS NULL OR purge_at_ms > ?)
ORDER BY key DESC LIMIT 1
"""
_NEW = "INSERT INTO stages (queue, write_id, token, jobs, purge_at_ms) VALUES (?, ?, ?, 0, ?)"
_GROW = "UPDATE stages SET jobs = ?, purge_at_ms = ? WHERE key = ?"
_ADD = "INSERT INTO staged (stage, body) VALUES (?, ?)"
_LAST_PLACE = "SELECT max(place) FROM stages WHERE queue = ? AND place IS NOT NULL"
_TAKE_PLACE = "UPDATE stages SET place = ?, purge_at_ms = NULL WHERE key = ?"
_DROP = "UPDATE stages SET place = NULL, purge_at_ms = ? WHERE key = ?"
_DROP_COMMITTED = """
UPDATE stages SET place = NULL, purge_at_ms = ? WHERE queue = ? AND place IS NOT NULL
"""
_OLDEST = "SELECT key, write_id FROM stages WHERE queue = ? AND place IS NOT NULL ORDER BY place"
_CHUNK = "SELECT key, body FROM staged WHERE stage = ? ORDER BY key LIMIT 1"
_IS_LEFT = "SELECT EXISTS (SELECT 1 FROM staged WHERE stage = ?)"
_ERASE_CHUNK = "DELETE FROM staged WHERE key = ?"
_ERASE = "DELETE FROM stages WHERE key = ?"
_COUNT = "SELECT count(*) FROM stages WHERE queue = ? AND place IS NOT NULL"
_ERASE_OVER_CHUNKS = """
DELETE FROM staged WHERE key IN (
  SELECT staged.key FROM stages JOIN staged ON staged.stage = stages.key
  WHERE queue = ? AND purge_at_ms <= ? LIMIT ?
)
"""
_ERASE_OVER = """
DELETE FROM stages WHERE queue = ? AND purge_at_ms <= ?
  AND NOT EXISTS (SELECT 1 FROM staged WHERE stage = stages.key)
"""
_COUNT_OVER = "SELECT count(*) FROM stages WHERE queue = ? AND purge_at_ms <= ?"

_Staged = tuple[str, str, int, bytes, dict[str, Any]]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_Staged]).decode


class Stage(msgspec.Struct):
    """What one writer has laid down: how many jobs, and whether they are committed."""

    key: int
    jobs: int
    is_committed: bool


class Chunk(msgspec.Struct, frozen=True):
    """The jobs that are to be published next.

    Attributes:
        write_id: of which write.
        jobs: what one call has staged.
        is_last: whether its stage ends with it.
    """

    write_id: str
    jobs: list[JobRequest]
    is_last: bool


def find(unit: UnitOfWork, write_id: str, token: str) -> Stage | None:
    """Return a stage that is there."""
    row = unit.db.execute(_FIND, (unit.key, write_id, token, unit.now_ms)).fetchone()
    return None if row is None else Stage(row[0], row[1], bool(row[2]))


def new(unit: UnitOfWork, write_id: str, token: str) -> Stage:
    """Return a new stage, in which nothing lies."""
    cursor = unit.db.execute(_NEW, (unit.key, write_id, token, unit.now_ms))
    assert cursor.lastrowid is not None, "a row was inserted"  # noqa: S101
    return Stage(cursor.lastrowid, 0, is_committed=False)


def keep(unit: UnitOfWork, stage: Stage, ttl_ms: int) -> None:
    """Have a stage that is not committed last for so long from now on."""
    unit.db.execute(_GROW, (stage.jobs, unit.now_ms + ttl_ms, stage.key))


def add(unit: UnitOfWork, stage: Stage, jobs: Sequence[JobRequest]) -> None:
    """Lay down jobs behind those that are there; `keep` writes how many that makes."""
    chunk = [(job.id, job.task, job.priority, job.payload, _options(job)) for job in jobs]
    unit.db.execute(_ADD, (stage.key, _encode(chunk)))
    stage.jobs += len(jobs)


def _options(job: JobRequest) -> dict[str, Any]:
    options = dict(asked(job))
    if not job.replaces_ended:
        options["replaces_ended"] = False
    return options


def commit(unit: UnitOfWork, stages: Iterable[Stage]) -> None:
    """Give stages their places behind those that are to be published already."""
    [last] = unit.db.execute(_LAST_PLACE, (unit.key,)).fetchone()
    places = enumerate(stages, (last or 0) + 1)
    unit.db.executemany(_TAKE_PLACE, [(place, stage.key) for place, stage in places])


def take(unit: UnitOfWork) -> Chunk | None:
    """Take the next jobs off the stages that are committed; None: nothing is left."""
    oldest = unit.db.execute(_OLDEST, (unit.key,)).fetchone()
    if oldest is None:
        return None
    stage, write_id = oldest
    chunk, body = unit.db.execute(_CHUNK, (stage,)).fetchone()
    unit.db.execute(_ERASE_CHUNK, (chunk,))
    [is_left] = unit.db.execute(_IS_LEFT, (stage,)).fetchone()
    if not is_left:
        unit.db.execute(_ERASE, (stage,))
    return Chunk(write_id, _read(body, unit.queue), is_last=not is_left)


def _read(body: bytes, queue: str) -> list[JobRequest]:
    """Return the jobs of a chunk; one that is damaged has none, and holds nothing up."""
    try:
        return [
            JobRequest(id=job_id, queue=queue, task=task, payload=data, priority=tier, **options)
            for job_id, task, tier, data, options in _decode(body)
        ]
    except (msgspec.MsgspecError, UnicodeError, TypeError):
        return []


def drop(unit: UnitOfWork, stages: Iterable[Stage]) -> None:
    """Have stages be as if they had never been."""
    unit.db.executemany(_DROP, [(unit.now_ms, stage.key) for stage in stages])


def drop_committed(unit: UnitOfWork) -> None:
    """Have nothing be left to publish."""
    unit.db.execute(_DROP_COMMITTED, (unit.now_ms, unit.key))


def count_committed(unit: UnitOfWork) -> int:
    """Return how many stages are left to publish."""
    [count] = unit.db.execute(_COUNT, (unit.key,)).fetchone()
    return int(count)


def erase_over(unit: UnitOfWork) -> int:
    """Erase a few chunks of stages whose time is over; return how many such stages are left."""
    values = (unit.key, unit.now_ms)
    unit.db.execute(_ERASE_OVER_CHUNKS, (*values, ERASED_A_CALL))
    unit.db.execute(_ERASE_OVER, values)
    [left] = unit.db.execute(_COUNT_OVER, values).fetchone()
    return int(left)

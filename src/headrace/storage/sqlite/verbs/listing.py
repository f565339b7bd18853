"""``list_jobs``: pages of the jobs in a state, each from behind the last row of the one before.

A page reads one piece of an index, however deep it is, and other jobs may come and go in between.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing
from typing import Annotated, Any

import msgspec

from headrace.errors import InvalidOption
from headrace.job import DEFAULT_LANE, JobRow, JobState
from headrace.storage.limits import ROW_MESSAGE_LIMIT
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.record import TERMINAL, read_error, read_put_back
from headrace.storage.sqlite.unit import UnitOfWork, find_unit
from headrace.storage.sqlite.wake import ready_lanes
from headrace.storage.values import Page

LOOKS = 2_000
"""Most rows looked at for a page, those included that are of another state or over."""

Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Key = tuple[Any, ...]
Places = Generator[tuple[Key, Key]]
"""Rows, each with its place in the listing."""


class Listing(msgspec.Struct, frozen=True):
    """The index by which the jobs of a state are listed.

    Attributes:
        where: which jobs are in it.
        columns: their order, together unlike any other job's.
        falling: those of the columns whose highest value comes first.
        key: the type of a place in that order.
    """

    where: str
    columns: tuple[str, ...]
    falling: tuple[str, ...] = ()
    key: Any = tuple[Whole, Whole]


# Of one lane; a place in the whole listing has the lane before.
_READY = Listing(
    "queue = ? AND lane = ? AND seq IS NOT NULL",
    ("tier", "seq"),
    ("tier",),
    tuple[str, Whole, Whole],
)
_DELAYED = Listing("queue = ? AND due_ms IS NOT NULL", ("due_ms", "key"))
_LISTINGS = {
    JobState.QUEUED: _READY,
    JobState.BLOCKED: Listing("queue = ? AND state = 'blocked'", ("created_ms", "key")),
    JobState.SCHEDULED: _DELAYED,
    JobState.RETRYING: _DELAYED,
    # Its index is of all queues, and short: + keeps SQLite from taking another one.
    JobState.ACTIVE: Listing("+queue = ? AND owner IS NOT NULL", ("owner", "key")),
    **{
        state: Listing(
            f"queue = ? AND state = '{state.value}' AND purge_at_ms IS NOT NULL",
            ("changed_ms", "key"),
            ("changed_ms", "key"),
        )
        for state in (JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED)
    },
}
_FIELDS = """
state, purge_at_ms, id, task, tier, failures, stalls, epoch, created_ms, changed_ms,
coalesce(due_ms, next_due_ms), run_ms, nonce, reason, error, put_back,
CASE WHEN error <> '' THEN
  (SELECT body FROM errors WHERE errors.job = jobs.key ORDER BY errors.key DESC LIMIT 1) END
"""


def read_cursor(state: JobState, cursor: str) -> Key:
    """Return the place behind which a page begins, () for the first one.

    Raises:
        InvalidOption: no page of that state has given out this cursor.
    """
    listing = _LISTINGS.get(state)
    if not cursor or listing is None:
        return ()
    try:
        key: Key = msgspec.json.decode(cursor, type=listing.key)
    except (msgspec.MsgspecError, UnicodeError):
        raise InvalidOption(
            f"cursor={cursor!r} is not one of a page of {state.value} jobs"
        ) from None
    return key


def list_jobs(step: Step, name: QueueName, state: JobState, after: Key, limit: int) -> Page:
    """Return one page of jobs in a state, from behind a place on."""
    unit = find_unit(step, name)
    listing = _LISTINGS.get(state)
    if unit is None or listing is None:
        return Page(rows=[], cursor="")
    places = (
        _by_lane(unit, after)
        if state is JobState.QUEUED
        else _behind(unit.db, listing, (unit.key,), after)
    )
    rows: list[JobRow] = []
    with closing(places) as found:
        for looks, (row, key) in enumerate(found, 1):
            is_over = row[1] is not None and row[1] <= step.now_ms
            if row[0] == state.value and not is_over:
                rows.append(_row(row))
            if len(rows) == limit or looks == LOOKS:
                return Page(rows=rows, cursor=msgspec.json.encode(key).decode())
    return Page(rows=rows, cursor="")


def _by_lane(unit: UnitOfWork, after: Key) -> Places:
    """Yield the ready rows behind a place: those of the default lane first, the others by name."""
    for lane in sorted(ready_lanes(unit.db, unit.key), key=_rank):
        is_last = bool(after) and lane == after[0]
        if after and _rank(lane) < _rank(after[0]):
            continue
        behind = _behind(unit.db, _READY, (unit.key, lane), after[1:] if is_last else ())
        with closing(behind) as found:
            for row, key in found:
                yield row, (lane, *key)


def _rank(lane: str) -> tuple[bool, str]:
    return lane != DEFAULT_LANE, lane


def _behind(db: sqlite3.Connection, listing: Listing, whose: Key, after: Key) -> Places:
    """Yield the rows behind a place, each with its own, in their order.

    First those that differ from it in the last column alone, then in the last two, and so on: each
    lot is one range of the index.
    """
    columns = listing.columns
    order = ", ".join(f"{c} DESC" if c in listing.falling else c for c in columns)
    for depth in reversed(range(max(1, len(after)))):
        where = listing.where
        if after:
            column = columns[depth]
            where += "".join(f" AND {same} = ?" for same in columns[:depth])
            where += f" AND {column} {'<' if column in listing.falling else '>'} ?"
        sql = f"SELECT {_FIELDS}, {', '.join(columns)} FROM jobs WHERE {where} ORDER BY {order}"  # noqa: S608
        with closing(db.execute(sql, (*whose, *after[: depth + 1]))) as found:
            for row in found:
                yield row[: -len(columns)], row[-len(columns) :]


def _row(row: tuple[Any, ...]) -> JobRow:
    state, _, job_id, task, tier, failures, stalls, epoch = row[:8]
    created_ms, changed_ms, due_ms, run_ms, nonce, reason, error, put_back, last_error = row[8:]
    message = read_error(last_error).message if last_error else ""
    if put_back is not None and state not in TERMINAL:
        cause = read_put_back(put_back, failures + stalls)
        error, message = ("", "") if cause is None else (cause.type, cause.message)
    return JobRow(
        id=job_id,
        task=task,
        state=JobState(state),
        priority=tier,
        failures=failures,
        stalls=stalls,
        starts=epoch,
        created_ms=created_ms,
        changed_ms=changed_ms,
        due_ms=due_ms or 0,
        run_ms=run_ms,
        incarnation=nonce.partition("/")[0],
        reason=reason,
        error=error,
        error_message=message[:ROW_MESSAGE_LIMIT],
    )

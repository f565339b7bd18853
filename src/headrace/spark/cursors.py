"""Places in exports of ended jobs: said, found, compared, split.

The offsets of a read of ended jobs are the cursors of exports, one for each queue and state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from headrace.errors import InvalidOption
from headrace.job import JobRecord, JobRow, JobState
from headrace.plain import shown
from headrace.storage.blocking import BlockingStorage
from headrace.storage.exports import export_cursor, not_a_cursor, place_behind
from headrace.storage.limits import BATCH_LIMIT
from headrace.storage.steps import at_once

Cursors = Mapping[str, Mapping[str, str]]
"""Cursors by queue and state; of one that is not there, "", the place before all ended jobs."""

Ended = tuple[int, bytes]
"""When a job ended, and its id: the order of an export."""

_BEFORE_ALL: Ended = (-1, b"")
_ANY_ID = "0"
"""A cursor of no job's has to have an id, too."""


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an export, read by one task of Spark.

    Attributes:
        queue: of which queue.
        state: the state that its jobs have ended in.
        after: the cursor behind which it begins, "" for the first job.
        until: the cursor of its last place.
        since_ms: no job that ended before this instant.
        before_ms: none that ended at this instant or later; 0: any.
    """

    queue: str
    state: JobState
    after: str
    until: str
    since_ms: int = 0
    before_ms: int = 0


def read_cursors(
    text: str, queues: Sequence[str], states: Sequence[JobState], *, name: str
) -> Cursors:
    """Return the offsets that an option says in JSON.

    Args:
        text: such as ``{"orders": {"failed": "<cursor>"}}``.
        queues: which are read; none: any.
        states: which are read.
        name: of the option.

    Raises:
        InvalidOption: it is no such JSON, or has a queue or state that is not read, or a cursor
            that is not one of its export.
    """
    try:
        found = msgspec.json.decode(text, type=dict[str, dict[str, str]])
    except msgspec.MsgspecError as error:
        raise InvalidOption(
            f'{name}={shown(text)} is not valid ({error}): use JSON such as {{"orders": '
            '{"failed": "<cursor>"}}'
        ) from None
    for queue, cursors in found.items():
        if queues and queue not in queues:
            raise InvalidOption(f"{name} has queue {shown(queue)}, which is not read: leave it out")
        for state, cursor in cursors.items():
            if state not in states:
                known = ", ".join(states)
                raise InvalidOption(f"{name} has state {shown(state)}: use some of {known}")
            place_of(cursor, queue, JobState(state))
    return found


def end_of(storage: BlockingStorage, queue: str, state: JobState) -> str:
    """Return a cursor behind all jobs that have ended in a state by now; "" where there are none.

    What ends later stands behind it, so what is before it is the same at every look, but for what
    is gone by then. Jobs that ended in this very millisecond may be left to the next time.
    """
    newest = _newest(storage, queue, state)
    if newest is None:
        return ""
    # The newest may still get neighbours in its millisecond: how far it is safe to go, an export
    # knows. This begins where it has that millisecond to look at, and little else.
    cursor = cursor_at(queue, state, newest.changed_ms - 1)
    while True:
        page = at_once(storage.export(queue, state, cursor=cursor))
        cursor = page.cursor
        is_past = page.records and page.records[-1].changed_ms > newest.changed_ms
        if is_past or not page.has_more:
            return cursor


def latest(
    storage: BlockingStorage, queues: Sequence[str], states: Sequence[JobState]
) -> dict[str, dict[str, str]]:
    """Return the `end_of` each queue and state that has one."""
    found: dict[str, dict[str, str]] = {}
    for queue in queues:
        ends = {state.value: end_of(storage, queue, state) for state in states}
        found[queue] = {state: cursor for state, cursor in ends.items() if cursor}
    return {queue: ends for queue, ends in found.items() if ends}


def cursor_at(queue: str, state: JobState, instant_ms: int) -> str:
    """Return a cursor behind all that ended before a millisecond; it may be behind some of that."""
    return export_cursor(queue, state, f"{instant_ms}:{_ANY_ID}")


def place_of(cursor: str, queue: str, state: JobState) -> Ended:
    """Return the place of a cursor, in the order of the ends.

    Raises:
        InvalidOption: it is not one of such an export.
    """
    place = place_behind(cursor, queue, state)
    if not place:
        return _BEFORE_ALL
    instant, _, job_id = place.partition(":")
    if not instant.isdecimal():
        raise not_a_cursor(cursor, queue, state)
    return int(instant), job_id.encode()


def rising(before: Cursors, after: Cursors) -> dict[str, dict[str, str]]:
    """Return the later cursor of each two: the newest job may have gone meanwhile."""
    joined = {queue: dict(cursors) for queue, cursors in before.items()}
    for queue, cursors in after.items():
        known = joined.setdefault(queue, {})
        for state, cursor in cursors.items():
            places = (known.get(state, ""), cursor)
            known[state] = max(places, key=lambda one: place_of(one, queue, JobState(state)))
    return joined


def pieces(after: Cursors, until: Cursors, *, since_ms: int = 0, before_ms: int = 0) -> list[Piece]:
    """Return what lies between offsets, a piece for each queue and state that has any."""
    found = []
    for queue, cursors in until.items():
        for word, end in cursors.items():
            state, start = JobState(word), after.get(queue, {}).get(word, "")
            if place_of(end, queue, state) > place_of(start, queue, state):
                found.append(
                    Piece(
                        queue=queue,
                        state=state,
                        after=start,
                        until=end,
                        since_ms=since_ms,
                        before_ms=before_ms,
                    )
                )
    return found


def split(storage: BlockingStorage, piece: Piece, parts: int) -> list[Piece]:
    """Return a piece in at most so many, each of about the same time."""
    first = _first_ms(storage, piece)
    last, _ = place_of(piece.until, piece.queue, piece.state)
    span = max(0, last - first)
    bounds = sorted({first + span * part // parts for part in range(1, parts)} - {first})
    cursors = [cursor_at(piece.queue, piece.state, bound) for bound in bounds]
    replace = msgspec.structs.replace
    return [
        replace(piece, after=start, until=end)
        for start, end in zip([piece.after, *cursors], [*cursors, piece.until], strict=True)
    ]


def pages(storage: BlockingStorage, piece: Piece) -> Iterator[list[JobRecord]]:
    """Yield the jobs of a piece, page by page; a page may be empty."""
    end = place_of(piece.until, piece.queue, piece.state)
    cursor, is_over = piece.after, False
    while not is_over:
        page = at_once(storage.export(piece.queue, piece.state, cursor=cursor))
        within = [one for one in page.records if (one.changed_ms, one.id.encode()) <= end]
        cursor = page.cursor
        is_over = not page.has_more or place_of(cursor, piece.queue, piece.state) >= end
        yield [one for one in within if _is_between(one.changed_ms, piece)]


def _is_between(ended_ms: int, piece: Piece) -> bool:
    return piece.since_ms <= ended_ms and not 0 < piece.before_ms <= ended_ms


def _first_ms(storage: BlockingStorage, piece: Piece) -> int:
    """Return when the first job of a piece ended, or its last place where there is none."""
    export = storage.export(piece.queue, piece.state, cursor=piece.after, limit=1)
    found = at_once(export).records
    return found[0].changed_ms if found else place_of(piece.until, piece.queue, piece.state)[0]


def _newest(storage: BlockingStorage, queue: str, state: JobState) -> JobRow | None:
    cursor = ""
    while True:
        page = at_once(storage.list_jobs(queue, state, cursor=cursor, limit=BATCH_LIMIT))
        if page.rows or not page.cursor:
            return page.rows[0] if page.rows else None
        cursor = page.cursor

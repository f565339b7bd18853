"""The arguments and replies of what looks at queues and jobs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from headrace.errors import InvalidOption
from headrace.events import EventRecord
from headrace.job import (
    DEFAULT_PRIORITY,
    JobRow,
    JobState,
    is_name,
)
from headrace.storage.event_pages import EventLines
from headrace.storage.incarnations import IncarnationInfo, worker_info
from headrace.storage.limits import OUTPUT_PAGE_LIMIT
from headrace.storage.lines import read_lines
from headrace.storage.queues import QueueCounts, QueueSettings
from headrace.storage.readers import ReaderInfo, read_stream_id
from headrace.storage.redis import keys
from headrace.storage.redis.calls.bulk_reader import read_entry
from headrace.storage.redis.calls.call import (
    SCORED,
    Call,
    T,
    command,
    place_text,
    read_beat,
    read_error_message,
    read_number,
    read_owner,
    read_place,
    text,
)
from headrace.storage.values import EventPage, OutputPage, Page, read_output_cursor

ROW_WIDTH = 15
WORKER_WIDTH = 6
READER_WIDTH = 4
_WAITS_FOR_A_TIME = (JobState.SCHEDULED, JobState.RETRYING, JobState.BLOCKED)

_CURSORS = {
    JobState.QUEUED: re.compile(
        r"[\w.-]{1,100}:\d:\d{1,15}:[^\ud800-\udfff]+", re.ASCII | re.DOTALL
    ),
    JobState.ACTIVE: re.compile(r"[^/\ud800-\udfff]+/[^\ud800-\udfff]+", re.DOTALL),
}


def queues(tenant: str) -> Call[list[str]]:
    """Build ``queues``: the names that can be a queue's, sorted; a stranger may add anything."""
    return _listed(tenant, queue_names)


def listed_names(tenant: str) -> Call[list[bytes]]:
    """Build the same for all that is on the list."""
    return _listed(tenant, list)


def _listed(tenant: str, read: Callable[[Any], list[T]]) -> Call[list[T]]:
    root = keys.tenant_root(tenant)
    return command("queues", root, "SMEMBERS", keys.queues(tenant), read=read)


def output(root: str, job_id: str, after: str, limit: int) -> Call[OutputPage]:
    """Build ``output``.

    Raises:
        InvalidOption: no page of output has given out this cursor.
    """
    epoch, number = read_output_cursor(after)
    seen = f"{epoch}-{number}"

    def read(reply: list[bytes]) -> OutputPage:
        return OutputPage(reply[1::2], reply[-2].decode() if reply else seen)

    return Call("output", root, [job_id, seen, min(limit, OUTPUT_PAGE_LIMIT)], read)


def list_jobs(root: str, state: JobState, cursor: str, limit: int) -> Call[Page]:
    """Build ``list_jobs``.

    Raises:
        InvalidOption: no page of that state has given out this cursor.
    """
    behind = read_place(cursor, _CURSORS.get(state, SCORED))
    if behind is None:
        raise InvalidOption(f"cursor={cursor!r} is not one of a page of {state.value} jobs")

    def read(reply: list[bytes]) -> Page:
        rows = [_row(reply[at : at + ROW_WIDTH]) for at in range(1, len(reply), ROW_WIDTH)]
        return Page(rows=rows, cursor=place_text(reply[0]))

    return Call("list_jobs", root, [state.value, behind, limit], read)


def _row(words: list[bytes]) -> JobRow:
    job_id, due, state, task, tier, failures, stalls, starts = words[:8]
    created, changed, run, claim, reason, error, last_error = words[8:]
    known = JobState(state.decode())
    return JobRow(
        id=text(job_id),
        task=text(task),
        state=known,
        priority=read_number(tier, DEFAULT_PRIORITY),
        failures=read_number(failures),
        stalls=read_number(stalls),
        starts=read_number(starts),
        created_ms=read_number(created),
        changed_ms=read_number(changed or created),
        due_ms=read_number(due) if known in _WAITS_FOR_A_TIME else 0,
        run_ms=read_number(run),
        incarnation=read_owner(claim),
        reason=text(reason),
        error=text(error),
        error_message=read_error_message(last_error),
    )


def stats(root: str) -> Call[QueueCounts]:
    """Build ``stats``."""
    return Call("stats", root, [], lambda reply: _stats(keys.queue_of(root), reply))


def _stats(queue: str, reply: list[bytes]) -> QueueCounts:
    names, numbers = [text(word) for word in reply[::2]], map(read_number, reply[1::2])
    on_failed = reply[reply.index(b"set:on_failed") + 1]
    # Buckets repeat a name; only their counts are summed.
    values: Counter[str] = Counter()
    for name, value in zip(names, numbers, strict=True):
        values[name] += value

    def named(prefix: str) -> dict[str, int]:
        found = {n.removeprefix(prefix): v for n, v in values.items() if n.startswith(prefix)}
        return dict(sorted(found.items()))

    def histogram(prefix: str) -> dict[int, int]:
        found = named(prefix).items()
        return dict(sorted((int(bound), n) for bound, n in found if bound.isdecimal()))

    return QueueCounts(
        queue=queue,
        is_paused=bool(values["paused"]),
        queued=values["count:queued"],
        scheduled=values["count:scheduled"],
        retrying=values["count:retrying"],
        active=values["count:active"],
        blocked=values["count:blocked"],
        lanes=named("count:queued:"),
        paused_tasks=list(named("paused_task:")),
        strikes=values["strikes"],
        history=values["history"],
        dead=values["dead"],
        workers=values["workers"],
        oldest_ms=values["oldest_ms"],
        window_ms=values["window_ms"],
        enqueued=values["stat:enqueued"],
        completed=values["stat:completed"],
        failed=values["stat:failed"],
        retried=values["stat:retried"],
        cancelled=values["stat:cancelled"],
        stalled=values["stat:stalled"],
        waits_ms=histogram("stat:wait:"),
        runs_ms=histogram("stat:run:"),
        settings=QueueSettings(
            history=values["set:history"],
            dead_letters=values["set:dead_letters"],
            dead_letter_ttl_ms=values["set:dead_letter_ttl_ms"],
            events=values["set:events"],
            events_cap=values["set:events_cap"],
            on_failed=text(on_failed),
            max_active=values["set:max_active"],
            max_length=values["set:max_length"],
            weight=values["set:weight"],
            aging=values["set:aging"],
        ),
    )


def workers(root: str) -> Call[list[IncarnationInfo]]:
    """Build ``workers``."""

    def read(reply: list[bytes]) -> list[IncarnationInfo]:
        rows = (reply[at : at + WORKER_WIDTH] for at in range(0, len(reply), WORKER_WIDTH))
        return sorted((read_worker(row) for row in rows), key=lambda worker: worker.incarnation)

    return Call("workers", root, [], read)


def read_worker(words: list[bytes]) -> IncarnationInfo:
    """Read what ``incarnations.words`` in Lua returns."""
    incarnation, beat, silent, info, since, active = words
    known = read_beat(beat)
    return worker_info(
        text(incarnation),
        info,
        lease_ms=known.lease_ms,
        registered_ms=read_number(since),
        active=read_number(active),
        silent_ms=read_number(silent),
        is_condemned=known.is_condemned,
    )


def events(root: str, after: str, limit: int) -> Call[EventPage]:
    """Build ``events``.

    Raises:
        InvalidOption: that is no id of an entry.
    """
    at_ms, seq = read_stream_id(after)
    words = ("XRANGE", f"{root}:events", f"({at_ms}-{seq}", "+", "COUNT", limit)
    return command("events", root, *words, read=_read_events)


def _read_events(entries: Sequence[Any]) -> EventPage:
    # An entry has several events, which share its id.
    events = [event for entry in entries for event in _events(read_entry(entry))]
    return EventPage(events=events, last_id=entries[-1][0].decode() if entries else "")


def _events(entry: EventLines) -> Iterator[EventRecord]:
    return read_lines(
        text(entry.lines),
        stream_id=entry.stream_id,
        at_ms=int(entry.stream_id.partition("-")[0]),
        last=entry.last,
    )


def readers(root: str) -> Call[list[ReaderInfo]]:
    """Build ``readers``."""
    return Call("readers", root, [], _read_readers)


def _read_readers(reply: list[bytes]) -> list[ReaderInfo]:
    told = read_number(reply[0])
    rows = (reply[at : at + READER_WIDTH] for at in range(1, len(reply), READER_WIDTH))
    found = [
        ReaderInfo(
            name=text(name),
            stream_id=stream_id.decode(),
            number=read_number(number),
            behind=max(0, told - read_number(number)),
            at_ms=read_number(at_ms),
        )
        for name, stream_id, number, at_ms in rows
    ]
    return sorted(found, key=lambda reader: reader.name)


def queue_names(names: Iterable[bytes]) -> list[str]:
    """Return the names that can be a queue's, sorted; what else a stranger added is no queue."""
    return sorted(text(name) for name in names if is_name(text(name)))

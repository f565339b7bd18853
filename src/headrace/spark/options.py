"""The options of the data source: names, bounds, defaults.

Spark does not heed the case of an option's name, and passes every value as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

import msgspec

from headrace.clock import duration_ms, instant_ms
from headrace.errors import InvalidOption
from headrace.job import DEFAULT_QUEUE, DEFAULT_TENANT, JobState, check_name, check_text
from headrace.nearest import nearest
from headrace.plain import shown
from headrace.spark.urls import check_shared
from headrace.storage.exports import EXPORTED
from headrace.storage.limits import BATCH_LIMIT, DEFAULT_STAGE_TTL_MS, DEFAULT_WRITE_KEEP_MS

ALL_QUEUES = "*"
MOST_EVENTS = 1_000_000_000
MOST_PARTITIONS = 10_000
LEAST_MS = 60_000
"""The shortest that a stage or a write is kept."""

_SPARKS_OWN = {"checkpointlocation", "queryname"}
_OF_PREPARE = {"idfrom", "duplicates", "payload"}
_O = TypeVar("_O", "ReadOptions", "WriteOptions")


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a write was asked to be.

    Attributes:
        url: where to; "": as ``HEADRACE_URL`` says in each process.
        tenant: whose queue.
        queue: of all jobs, or of those whose row names none.
        task: of all jobs, or of those whose row names none; "": each row has to.
        is_atomic: whether it is there as a whole or not at all; else each row by itself.
        write_id: under which an atomic write may be run again; "": a random one.
        id_column: has the ids of jobs.
        payload_column: has their arguments: JSON objects as text or bytes.
        allows_random_ids: whether rows without ids may be written directly.
        replaces_ended: whether a job takes the place of a failed or cancelled one of its id.
        batch_size: most jobs in a call.
        stage_ttl_ms: how long what is staged is kept without a commit.
        keep_write_ms: how long an atomic write is known once it is published.
        retry_for_ms: how long calls are repeated while the storage is away.
    """

    url: str = ""
    tenant: str = DEFAULT_TENANT
    queue: str = DEFAULT_QUEUE
    task: str = ""
    is_atomic: bool = False
    write_id: str = ""
    id_column: str = "id"
    payload_column: str = "payload"
    allows_random_ids: bool = False
    replaces_ended: bool = False
    batch_size: int = BATCH_LIMIT
    stage_ttl_ms: int = DEFAULT_STAGE_TTL_MS
    keep_write_ms: int = DEFAULT_WRITE_KEEP_MS
    retry_for_ms: int = 60_000


class ReadOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be read.

    Attributes:
        url: where from; "": as ``HEADRACE_URL`` says in each process.
        tenant: whose queues.
        read: ``events``, ``jobs`` or ``dead``.
        queues: which; none: all that the tenant has when the query begins, and those that come
            later to a stream.
        states: in which states jobs have ended.
        starting: ``earliest``, ``latest``, or offsets in JSON; "": ``latest`` for a stream of
            events, else ``earliest``.
        ending: ``latest``, or offsets in JSON of the last that is to be read; "": ``latest``. Of a
            batch alone.
        starting_ms: no event that happened, or job that ended, before this instant; 0: any.
        ending_ms: none from this instant on; 0: any that there is when the query begins.
        max_events: about how many events a trigger may bring; 0: all that there are.
        min_partitions: in how many parts Spark reads at least, where there is enough.
        fails_on_loss: whether events that were trimmed before they were read fail the query.
        retry_for_ms: how long a call for events is repeated while the storage is away.
    """

    url: str = ""
    tenant: str = DEFAULT_TENANT
    read: str = "events"
    queues: tuple[str, ...] = (DEFAULT_QUEUE,)
    states: tuple[JobState, ...] = EXPORTED
    starting: str = ""
    ending: str = ""
    starting_ms: int = 0
    ending_ms: int = 0
    max_events: int = 0
    min_partitions: int = 2
    fails_on_loss: bool = True
    retry_for_ms: int = 60_000


class _Option(NamedTuple):
    """Where an option goes, and how its text is read; the name is there for the error."""

    field: str
    parse: Callable[[str, str], Any]


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """Return what the options of a write say.

    Raises:
        InvalidOption: one is not known, out of bounds, or does not go with another.
    """
    found = _parsed(WriteOptions, options, _WRITE, _READ, "write")
    if found.write_id and not found.is_atomic:
        raise InvalidOption(
            f"writeId={shown(found.write_id)} is for commit=atomic: a direct write is safe to run "
            "again by the ids of its jobs"
        )
    return found


def read_options(options: Mapping[str, str]) -> ReadOptions:
    """Return what the options of a read say.

    Raises:
        InvalidOption: one is not known, out of bounds, or does not go with another.
    """
    found = _parsed(ReadOptions, options, _READ, _WRITE, "read")
    said = {name.lower() for name in options}
    if found.read == "events":
        _refuse(said, {"states"}, "read=jobs")
    else:
        _refuse(said, {"maxeventspertrigger", "failondataloss", "retryfor"}, "read=events")
    if found.read == "dead":
        _refuse(said, {"states"}, "read=jobs")
        found = msgspec.structs.replace(found, states=(JobState.FAILED,))
    if found.starting and found.starting_ms:
        raise InvalidOption("startingOffsets and startingTimestamp: say one of them")
    if found.ending and found.ending_ms:
        raise InvalidOption("endingOffsets and endingTimestamp: say one of them")
    return found


def _refuse(said: set[str], names: set[str], where: str) -> None:
    for name in sorted(said & names):
        raise InvalidOption(f"{_spelt(name)} is an option of {where} alone: leave it out")


def _parsed(
    kind: type[_O],
    options: Mapping[str, str],
    known: Mapping[str, _Option],
    others: Mapping[str, _Option],
    verb: str,
) -> _O:
    by_lower = {name.lower(): name for name in known}
    values: dict[str, Any] = {}
    for given, text in options.items():
        name = by_lower.get(given.lower())
        if name is None:
            if given.lower() in _SPARKS_OWN:
                continue
            raise _unknown(given, known, others, verb)
        option = known[name]
        values[option.field] = option.parse(name, text)
    return kind(**values)


def _unknown(
    given: str, known: Mapping[str, _Option], others: Mapping[str, _Option], verb: str
) -> InvalidOption:
    lower = given.lower()
    if lower in _OF_PREPARE:
        return InvalidOption(f"{shown(given)} is an argument of headrace.spark.prepare()")
    if lower == "path":
        return InvalidOption("there is no path: say .option('queue', ...), and save() or load()")
    if lower in {name.lower() for name in others}:
        return InvalidOption(f"{_spelt(lower)} is no option of a {verb}: leave it out")
    meant = nearest(lower, [name.lower() for name in known])
    advice = f"did you mean {_spelt(meant)}?" if meant else f"known are {', '.join(known)}"
    return InvalidOption(f"option {shown(given)} of a {verb} is not known: {advice}")


def _spelt(lower: str) -> str:
    return next(name for name in (*_WRITE, *_READ) if name.lower() == lower)


def _url(_name: str, text: str) -> str:
    return check_shared(text)


def _name(name: str, text: str) -> str:
    return check_name(text, what=name)


def _text(name: str, text: str) -> str:
    return check_text(text, what=name)


def _queues(_name: str, text: str) -> tuple[str, ...]:
    if text.strip() == ALL_QUEUES:
        return ()
    return tuple(dict.fromkeys(check_name(one.strip(), what="queue") for one in text.split(",")))


def _states(name: str, text: str) -> tuple[JobState, ...]:
    words = [one.strip() for one in text.split(",")]
    ended = {state.value: state for state in EXPORTED}
    if not set(words) <= set(ended):
        raise InvalidOption(f"{name}={shown(text)} is not known: use some of {', '.join(ended)}")
    return tuple(dict.fromkeys(ended[word] for word in words))


def _one_of(*words: str) -> Callable[[str, str], str]:
    def parse(name: str, text: str) -> str:
        if text.lower() not in words:
            raise InvalidOption(f"{name}={shown(text)} is not known: use {' or '.join(words)}")
        return text.lower()

    return parse


def _is_atomic(name: str, text: str) -> bool:
    return _one_of("direct", "atomic")(name, text) == "atomic"


def _flag(name: str, text: str) -> bool:
    return _one_of("true", "false")(name, text) == "true"


def _count(most: int) -> Callable[[str, str], int]:
    def parse(name: str, text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", text) or not 1 <= int(text) <= most:
            raise InvalidOption(f"{name}={shown(text)} is not valid: use 1 to {most:,}")
        return int(text)

    return parse


def _duration(least_ms: int) -> Callable[[str, str], int]:
    def parse(name: str, text: str) -> int:
        try:
            seconds = float(text)
        except ValueError:
            raise InvalidOption(f"{name}={shown(text)} is not valid: use seconds") from None
        return duration_ms(seconds, name=name, least_ms=least_ms)

    return parse


def _instant(name: str, text: str) -> int:
    if re.fullmatch(r"[0-9]{1,15}", text):
        return int(text)
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidOption(
            f"{name}={shown(text)} is not valid: use an instant such as 2026-01-31T12:00:00Z, or "
            "milliseconds since the epoch"
        ) from None
    return instant_ms(instant if instant.tzinfo else instant.replace(tzinfo=UTC), name=name)


def _offsets(*words: str) -> Callable[[str, str], str]:
    def parse(name: str, text: str) -> str:
        if text.lower() in words:
            return text.lower()
        if not text.lstrip().startswith("{"):
            raise InvalidOption(
                f"{name}={shown(text)} is not valid: use {', '.join(words)}, or offsets in JSON"
            )
        return text

    return parse


_SHARED = {
    "url": _Option("url", _url),
    "tenant": _Option("tenant", _name),
    "retryFor": _Option("retry_for_ms", _duration(0)),
}
_WRITE = {
    **_SHARED,
    "queue": _Option("queue", _name),
    "task": _Option("task", _text),
    "commit": _Option("is_atomic", _is_atomic),
    "writeId": _Option("write_id", _text),
    "idColumn": _Option("id_column", _text),
    "payloadColumn": _Option("payload_column", _text),
    "allowRandomIds": _Option("allows_random_ids", _flag),
    "replaceEnded": _Option("replaces_ended", _flag),
    "batchSize": _Option("batch_size", _count(BATCH_LIMIT)),
    "stageTtl": _Option("stage_ttl_ms", _duration(LEAST_MS)),
    "keepWrite": _Option("keep_write_ms", _duration(LEAST_MS)),
}
_READ = {
    **_SHARED,
    "read": _Option("read", _one_of("events", "jobs", "dead")),
    "queue": _Option("queues", _queues),
    "states": _Option("states", _states),
    "startingOffsets": _Option("starting", _offsets("earliest", "latest")),
    "endingOffsets": _Option("ending", _offsets("latest")),
    "startingTimestamp": _Option("starting_ms", _instant),
    "endingTimestamp": _Option("ending_ms", _instant),
    "maxEventsPerTrigger": _Option("max_events", _count(MOST_EVENTS)),
    "minPartitions": _Option("min_partitions", _count(MOST_PARTITIONS)),
    "failOnDataLoss": _Option("fails_on_loss", _flag),
}

"""The options of the data source: names, bounds, defaults.

Spark does not heed the case of an option's name, and passes every value as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from headrace.errors import InvalidOption
from headrace.job import DEFAULT_QUEUE, DEFAULT_TENANT, JobState
from headrace.nearest import nearest
from headrace.plain import shown
from headrace.spark import option_values
from headrace.storage.exports import EXPORTED
from headrace.storage.limits import BATCH_LIMIT, DEFAULT_STAGE_TTL_MS, DEFAULT_WRITE_KEEP_MS

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
        as_it_was: whether arguments and stored options are those of another job, and are taken
            whatever they are.
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
    as_it_was: bool = False


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


def _as_it_is(_name: str, text: str) -> str:
    return text


class SourceOption(NamedTuple):
    """Where an option goes, and how its value is read; each function is told its name, too.

    Attributes:
        field: where it goes.
        check: returns what is kept of a value that a program may pass.
        read: returns such a value of text, which is all that Spark passes.
    """

    field: str
    check: Callable[[str, Any], Any]
    read: Callable[[str, str], Any] = _as_it_is


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """Return what the options of a write say.

    Raises:
        InvalidOption: one is not known, out of bounds, or does not go with another.
    """
    found = _parsed(WriteOptions, options, WRITE, _READ, "write")
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
    found = _parsed(ReadOptions, options, _READ, WRITE, "read")
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


def check_unending(options: ReadOptions) -> None:
    """See that the options of a stream do not say where it ends.

    Raises:
        InvalidOption: they do.
    """
    if options.ending or options.ending_ms:
        raise InvalidOption(
            "endingOffsets and endingTimestamp are options of spark.read: a stream has no end, "
            "leave them out"
        )


def _refuse(said: set[str], names: set[str], where: str) -> None:
    for name in sorted(said & names):
        raise InvalidOption(f"{_spelt(name)} is an option of {where} alone: leave it out")


def _parsed(
    kind: type[_O],
    options: Mapping[str, str],
    known: Mapping[str, SourceOption],
    others: Mapping[str, SourceOption],
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
        values[option.field] = option.check(name, option.read(name, text))
    return kind(**values)


def _unknown(
    given: str, known: Mapping[str, SourceOption], others: Mapping[str, SourceOption], verb: str
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
    return next(name for name in (*WRITE, *_READ) if name.lower() == lower)


def _flag(field: str) -> SourceOption:
    return SourceOption(field, option_values.flag, option_values.read_flag)


def _count(field: str, most: int) -> SourceOption:
    return SourceOption(field, option_values.count(most), option_values.read_count)


def _duration(field: str, least_ms: int) -> SourceOption:
    return SourceOption(field, option_values.duration(least_ms), option_values.read_seconds)


_SHARED = {
    "url": SourceOption("url", option_values.url),
    "tenant": SourceOption("tenant", option_values.name),
    "retryFor": _duration("retry_for_ms", 0),
}
WRITE: Mapping[str, SourceOption] = {
    **_SHARED,
    "queue": SourceOption("queue", option_values.name),
    "task": SourceOption("task", option_values.text),
    "commit": SourceOption("is_atomic", option_values.is_atomic),
    "writeId": SourceOption("write_id", option_values.text),
    "idColumn": SourceOption("id_column", option_values.text),
    "payloadColumn": SourceOption("payload_column", option_values.text),
    "allowRandomIds": _flag("allows_random_ids"),
    "replaceEnded": _flag("replaces_ended"),
    "batchSize": _count("batch_size", BATCH_LIMIT),
    "stageTtl": _duration("stage_ttl_ms", LEAST_MS),
    "keepWrite": _duration("keep_write_ms", LEAST_MS),
}
"""The options of a write by their names."""

_READ = {
    **_SHARED,
    "read": SourceOption("read", option_values.one_of("events", "jobs", "dead")),
    "queue": SourceOption("queues", option_values.queues),
    "states": SourceOption("states", option_values.states),
    "startingOffsets": SourceOption("starting", option_values.offsets("earliest", "latest")),
    "endingOffsets": SourceOption("ending", option_values.offsets("latest")),
    "startingTimestamp": SourceOption("starting_ms", option_values.instant),
    "endingTimestamp": SourceOption("ending_ms", option_values.instant),
    "maxEventsPerTrigger": _count("max_events", MOST_EVENTS),
    "minPartitions": _count("min_partitions", MOST_PARTITIONS),
    "failOnDataLoss": _flag("fails_on_loss"),
}

"""Which jobs may be sent: those that a task has just made as they are, all others checked.

A job is a public value, which anybody can make, copy, change and send twice.
"""

from __future__ import annotations

import time

import msgspec
from msgspec.structs import force_setattr

from headrace.clock import MAX_DURATION_MS
from headrace.errors import InvalidOption, PayloadTooLarge, UsageError
from headrace.job import (
    DEFAULT_KEEP_MS,
    DEFAULT_LANE,
    DEFAULT_MAX_STALLS,
    PAYLOAD_LIMIT_BYTES,
    Job,
    JobOptions,
    check_name,
    check_text,
    era,
)
from headrace.plain import cut, shown
from headrace.settings import MOST_ATTEMPTS, check_count, check_headers, check_priority


def admit(job: Job) -> Job:
    """Return what may be sent in place of ``job``: itself, but once only, or a checked copy.

    Raises:
        UsageError: it is no job, or a value of it is not valid.
    """
    # Nothing may come between the look and the mark's end, not even a switch of threads: the
    # interpreter makes none in these two statements.
    if job.__class__ is Job and job.era == era.number:
        force_setattr(job, "era", 0)
        return job
    return checked(job)


def checked(job: Job) -> Job:
    """Return a job of plain values that is not taken for a new one.

    Raises:
        UsageError: it is no job, or a value of it is not valid.
    """
    if not isinstance(job, Job):
        raise UsageError(f"{shown(job)} is no job: pass what task.job(...) returns")
    if job.reply_to != "":
        raise InvalidOption(
            f"reply_to={shown(job.reply_to)} can't be said: enqueue_and_wait sets it"
        )
    payload = _bytes(job.payload, name="payload")
    if len(payload) > PAYLOAD_LIMIT_BYTES:
        raise PayloadTooLarge(
            f"the payload is {len(payload):,} bytes, the limit is {PAYLOAD_LIMIT_BYTES:,}: store "
            "the data elsewhere and pass its key"
        )
    latest_ms = round(time.time() * 1000) + MAX_DURATION_MS
    made = Job(
        id=check_text(job.id, what="job id"),
        queue=check_name(job.queue, what="queue"),
        task=check_text(job.task, what="task name"),
        payload=payload,
        priority=check_priority(job.priority),
        lane="" if job.lane == "" else check_name(job.lane, what="lane"),
        delay_ms=_ms(job.delay_ms, name="delay_ms"),
        run_at_ms=_ms(job.run_at_ms, name="run_at_ms", most=latest_ms),
        expires_in_ms=_ms(job.expires_in_ms, name="expires_in_ms"),
        expires_at_ms=_ms(job.expires_at_ms, name="expires_at_ms", most=latest_ms),
        max_stalls=check_count(job.max_stalls, name="max_stalls", most=MOST_ATTEMPTS),
        keep_ms=_ms(job.keep_ms, name="keep_ms"),
        options=_options(_bytes(job.options, name="options")),
    )
    _check_pair(made, "delay_ms", "run_at_ms")
    _check_pair(made, "expires_in_ms", "expires_at_ms")
    if _is_plain(made):
        force_setattr(made, "is_plain", True)
    return made


def _ms(value: int, *, name: str, most: int = MAX_DURATION_MS) -> int:
    return check_count(value, name=name, most=most, least=0)


def _bytes(value: bytes, *, name: str) -> bytes:
    if not isinstance(value, bytes):
        raise InvalidOption(f"{name}={shown(value)} is not valid: it is bytes, encoded")
    return value if type(value) is bytes else bytes.__getitem__(value, slice(None))


def _check_pair(job: Job, first: str, second: str) -> None:
    if getattr(job, first) and getattr(job, second):
        raise InvalidOption(f"{first} and {second}: say one of them")


def _options(encoded: bytes) -> bytes:
    if not encoded:
        return b""
    try:
        options = msgspec.json.decode(encoded, type=JobOptions)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidOption(f"the options can't be read ({cut(str(error))})") from None
    if options.max_attempts is not None:
        check_count(options.max_attempts, name="max_attempts", most=MOST_ATTEMPTS)
    if options.timeout_ms is not None:
        check_count(options.timeout_ms, name="timeout_ms", most=MAX_DURATION_MS)
    for name in ("result_ttl_ms", "keep_ms"):
        if getattr(options, name) is not None:
            _ms(getattr(options, name), name=name)
    check_headers(options.headers)
    return msgspec.json.encode(options)


def _is_plain(job: Job) -> bool:
    has_time = job.delay_ms or job.run_at_ms or job.expires_in_ms or job.expires_at_ms
    has_limits = job.max_stalls != DEFAULT_MAX_STALLS or job.keep_ms != DEFAULT_KEEP_MS
    return not (has_time or has_limits or job.lane != DEFAULT_LANE or job.options)

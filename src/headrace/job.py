"""The values that describe a job: what is asked for, what is claimed, what is kept.

Nothing here does I/O or knows a task, an app or a storage.
"""

from __future__ import annotations

import os
import re
import threading
import time
from enum import StrEnum
from itertools import count
from typing import Any, Generic

import msgspec
from typing_extensions import TypeVar

from headrace.errors import InvalidOption
from headrace.forks import on_fork
from headrace.plain import has_control, plain_text, shown

R_co = TypeVar("R_co", covariant=True, default=Any)

DEFAULT_LANE = "default"
PROCESS_LANE = "process"
DEFAULT_PRIORITY = 5
PRIORITIES = range(10)
DEFAULT_QUEUE = "default"
DEFAULT_TENANT = "default"
DEFAULT_MAX_ATTEMPTS = 3
DEFAULT_MAX_STALLS = 3
DEFAULT_KEEP_MS = 3_600_000
DEFAULT_IDEMPOTENCY_TTL_MS = 24 * 3_600_000
WAITED_RESULT_TTL_MS = 60_000
"""Least time for which a result is kept that an `enqueue_and_wait` waits for."""
ID_LIMIT_BYTES = 256
SLOTS_LIMIT = 1_000
"""Most slots that one job holds."""
PAYLOAD_LIMIT_BYTES = 1024 * 1024
RESULT_LIMIT_BYTES = 1024 * 1024
CHUNK_LIMIT_BYTES = 64 * 1024


class JobState(StrEnum):
    """Where a job is. The last three are terminal."""

    SCHEDULED = "scheduled"
    BLOCKED = "blocked"
    QUEUED = "queued"
    ACTIVE = "active"
    RETRYING = "retrying"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        """Whether the job has ended."""
        return self in (JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED)


class FailReason(StrEnum):
    """Why a job became a dead letter."""

    EXHAUSTED = "exhausted"
    PERMANENT = "permanent"
    STALLED = "stalled"
    UNDECODABLE = "undecodable"
    EXPIRED = "expired"
    UNKNOWN_TASK = "unknown_task"
    RESULT_TOO_LARGE = "result_too_large"


class EnqueueOutcome(StrEnum):
    """What became of a request to enqueue; ``unknown`` to a handle that enqueued nothing.

    ``blocked``: a limit has no room for it yet. ``updated``: a job of its id was there, and what it
    asks for was set in that one, or waits to run after it.
    """

    QUEUED = "queued"
    SCHEDULED = "scheduled"
    BLOCKED = "blocked"
    DUPLICATE = "duplicate"
    COMPLETED = "completed"
    UPDATED = "updated"
    UNKNOWN = "unknown"

    @property
    def is_added(self) -> bool:
        """Whether the request has brought a job in."""
        return self in ADDED


ADDED = (EnqueueOutcome.QUEUED, EnqueueOutcome.SCHEDULED, EnqueueOutcome.BLOCKED)
"""What became of requests that have brought a job in."""


class FirstUse(msgspec.Struct, frozen=True):
    """What comes of a request whose idempotency key is known: nothing is stored.

    Attributes:
        outcome: ``completed`` if the first job with the key is, and is kept; else ``duplicate``.
        id: of that job, which may be gone by now.
    """

    outcome: EnqueueOutcome
    id: str


Verdict = EnqueueOutcome | FirstUse
"""What a storage answers of each job."""


def outcome_of(verdict: Verdict) -> EnqueueOutcome:
    """Return what became of a request."""
    return verdict.outcome if isinstance(verdict, FirstUse) else verdict


class CancelOutcome(StrEnum):
    """What became of a request to cancel.

    ``requested``: the job is active and will be asked to stop. ``finished``: it had ended
    otherwise.
    """

    CANCELLED = "cancelled"
    REQUESTED = "requested"
    FINISHED = "finished"
    NOT_FOUND = "not_found"


class Job(msgspec.Struct, Generic[R_co], frozen=True):
    """One request to run a task, ready to be stored; its type is that of the task's result.

    Made by ``task.job(...)``; pass it to ``app.enqueue_many``. ``payload`` and ``options`` are
    encoded. ``delay_ms`` and ``expires_in_ms`` count from the storage's clock; ``run_at_ms`` and
    ``expires_at_ms`` are instants; 0 means none. ``lane`` is the kind of slot that it needs; "": as
    workers have said of its task. ``options`` are those that the storage only keeps: an object of
    names and values for who reads them, such as its worker, in two parts with a newline between:
    those that are its data, and those about its retries. The second may be left out, with the
    newline. ``on_failed`` is the task of the job that its dead letter brings; "": as its queue
    says. With an ``idempotency_key`` ("": none) that came before, not longer ago than that job's
    ``idempotency_ttl_ms``, nothing is stored. ``gates`` are the limits that it meets, at most four,
    as `headrace.limit.gates_text` writes them. ``slots`` is how many of its lane it holds while it
    runs, 1 to 1,000.
    """

    id: str
    queue: str
    task: str
    payload: bytes
    priority: int = DEFAULT_PRIORITY
    lane: str = DEFAULT_LANE
    delay_ms: int = 0
    run_at_ms: int = 0
    expires_in_ms: int = 0
    expires_at_ms: int = 0
    max_stalls: int = DEFAULT_MAX_STALLS
    keep_ms: int = DEFAULT_KEEP_MS
    options: bytes = b""
    on_failed: str = ""
    idempotency_key: str = ""
    idempotency_ttl_ms: int = DEFAULT_IDEMPOTENCY_TTL_MS
    gates: str = ""
    slots: int = 1


class Claim(msgspec.Struct, frozen=True):
    """What owns the current attempt of a job: any write about it must show both parts.

    Attributes:
        epoch: how often the job has been started, this time included.
        nonce: the incarnation and a random part; unequal even if lost writes repeat an epoch.
    """

    epoch: int
    nonce: str


class ClaimedJob(msgspec.Struct, frozen=True):
    """A job that a worker owns for one attempt.

    ``failures`` counts handler errors and ``stalls`` worker deaths before this attempt. It holds
    ``slots`` of its lane.
    """

    id: str
    queue: str
    task: str
    payload: bytes
    claim: Claim
    failures: int
    stalls: int
    created_ms: int
    waited_ms: int
    options: bytes
    slots: int = 1


class ErrorInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of a job's error history.

    Attributes:
        type: qualified name of the exception.
        message: its text, at most 2,000 characters.
        traceback: its last 8,000 characters.
        start: the start that it ended.
        at_ms: the storage's time, ms since the epoch.
    """

    type: str
    message: str
    traceback: str = ""
    start: int = 0
    at_ms: int = 0


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the storage keeps of a job.

    Instants are milliseconds since the epoch by the storage's clock, 0 for none.

    ``failures`` counts handler errors, ``stalls`` worker deaths and ``starts`` claims.
    ``max_stalls`` and ``keep_ms`` are those of `Job`. ``progress`` is what the last attempt has
    said of itself, from 0 to 1, None if it said nothing. ``put_back`` is why workers have put the
    job back since its handler last ran, None if none has or the job has ended; its ``at_ms`` is
    when the first of them did. ``has_next`` tells of an active job that one of its id is blocked
    by it, and runs next. ``on_failed`` is as in `Job`. ``gates`` are the limits that it meets: a
    line of name and key each, a tab between; ``parked`` is that in whose line it is blocked, "" for
    none. ``slots`` is as in `Job`.
    """

    id: str
    queue: str
    task: str
    state: JobState
    priority: int
    lane: str
    failures: int
    stalls: int
    starts: int
    created_ms: int
    changed_ms: int
    due_ms: int
    expires_ms: int
    run_ms: int
    incarnation: str
    cancel_requested: bool
    reason: str
    options: bytes
    payload: bytes | None
    result: bytes | None
    errors: list[ErrorInfo]
    progress: float | None = None
    progress_text: str = ""
    put_back: ErrorInfo | None = None
    max_stalls: int = DEFAULT_MAX_STALLS
    keep_ms: int = DEFAULT_KEEP_MS
    has_next: bool = False
    on_failed: str = ""
    gates: str = ""
    parked: str = ""
    slots: int = 1


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a job listing: no payload, result or traceback.

    ``error`` is the type of a dead letter's last error, or of what a waiting job was put back for,
    and ``error_message`` the beginning of what it said.
    """

    id: str
    task: str
    state: JobState
    priority: int
    failures: int
    stalls: int
    starts: int
    created_ms: int
    changed_ms: int
    due_ms: int
    run_ms: int
    incarnation: str
    reason: str
    error: str
    error_message: str = ""


_NAME_RULE = "1 to 100 letters, digits, '.', '_' and '-', starting with a letter or digit"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")


def is_name(value: str) -> bool:
    """Whether ``value`` may name a queue, tenant or lane."""
    return _NAME.match(value) is not None


def check_name(value: str, *, what: str) -> str:
    """Return ``value`` as a plain string if it may name a queue, tenant or lane.

    Raises:
        InvalidOption: it does not match ``[A-Za-z0-9][A-Za-z0-9._-]{0,99}``.
    """
    name = plain_text(value)
    if name is None or not _NAME.match(name):
        raise _not_valid(value, what, _NAME_RULE)
    return name


def check_text(value: str, *, what: str, limit_bytes: int = ID_LIMIT_BYTES) -> str:
    """Return ``value`` as a plain string if it may be a job id or task name.

    Raises:
        InvalidOption: it is empty, over ``limit_bytes`` of UTF-8, not encodable, or has control
            characters.
    """
    text = plain_text(value)
    if text is None:
        pass
    elif text.isascii() and text.isprintable():
        if 0 < len(text) <= limit_bytes:
            return text
    elif not has_control(text):
        try:
            if 0 < len(text.encode()) <= limit_bytes:
                return text
        except UnicodeEncodeError:
            pass
    rule = f"1 to {limit_bytes} bytes of UTF-8 without control characters"
    raise _not_valid(value, what, rule)


def _not_valid(value: object, what: str, rule: str) -> InvalidOption:
    if plain_text(value) is not None:
        return InvalidOption(f"{what} {shown(value)} is not valid: use {rule}")
    if value is None:
        return InvalidOption(f"{what} None is not valid: use a str of {rule}")
    kind = type(value).__name__
    return InvalidOption(
        f"{what} {shown(value)} is of type {kind} and no str: pass str(...) of it ({rule})"
    )


_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [high + low for high in _ALPHABET for low in _ALPHABET]


class JobIds:
    """A source of ULIDs (github.com/ulid/spec): sortable by time, and rising within one source.

    Any number of threads may share one: an id is greater than all that were returned before its
    call began. The random part is drawn once per millisecond and then counted up, as the
    specification's monotonic mode does. Neighbours differ in the low bits only, so the text of the
    upper 110 bits is kept: 0.3 µs an id against 1.3.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Draw anew at the next id; for a forked child, which shares its parent's state."""
        # A signal's handler may draw in the midst of a draw of its own thread.
        self._lock = threading.RLock()
        self._millisecond = 0
        self._next_value = count().__next__
        self._head = (-1, "")  # bits and text in one: a thread may come between two fields

    def __call__(self) -> str:
        """Return a new id of 26 characters."""
        now = time.time_ns() // 1_000_000
        if now > self._millisecond:
            self._begin(now)
        value = self._next_value()  # no thread comes between, with or without a GIL
        head_bits, head = self._head
        if value >> 20 != head_bits:
            head_bits = value >> 20
            head = "".join([_PAIRS[head_bits >> shift & 1023] for shift in range(100, -1, -10)])
            self._head = head_bits, head
        low_bits = value & 0xFFFFF
        return head + _PAIRS[low_bits >> 10] + _PAIRS[low_bits & 1023]

    def _begin(self, now: int) -> None:
        """Have values counted from a random one of this millisecond, unless a later has begun."""
        # One bit is left free, so that counting up cannot spill into the time.
        drawn = count(now << 80 | int.from_bytes(os.urandom(10)) >> 1)
        with self._lock:
            if now > self._millisecond:
                # In this order: who sees the millisecond must not count on from an earlier one.
                self._next_value = drawn.__next__
                self._millisecond = now


new_job_id: JobIds = JobIds()
"""The process's own source of job ids."""

on_fork(in_child=new_job_id.reset)

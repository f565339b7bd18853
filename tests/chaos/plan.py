"""What is to become of each job: a function of its label alone, which both sides know.

A label is ``kind.origin.number``. A job with an id of its producer's has its label for an id.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from headrace import FailReason, JobState, Retry

QUEUES = ("main", "side")
LARGE_BYTES = 100_000
HEAVY_BYTES = 20_000
CANCEL_S = 8.0
"""How long a job goes on that waits for its cancel."""

TIMES_OUT_S = 1.0
HANGS_S = 60.0
QUICKLY = Retry(min=0.05, max=0.4)
UNLIMITED = 1000
"""Stalls that a job may have which is to end as planned, whoever dies around it."""


class Kind(StrEnum):
    """What kinds of jobs there are."""

    PLAIN = "plain"
    TIERED = "tiered"
    THREAD = "thread"
    PROCESS = "process"
    RETRY = "retry"
    FAIL = "fail"
    PERMANENT = "permanent"
    ODD = "odd"
    SLOW = "slow"
    DELAYED = "delayed"
    CANCEL = "cancel"
    WITHDRAWN = "withdrawn"
    LARGE = "large"
    HEAVY = "heavy"
    BRIEF = "brief"
    HANG = "hang"
    CRASH = "crash"
    POISON = "poison"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How a job runs, and how it ends.

    Attributes:
        task: ``plain``, ``coroutine``, ``thread`` or ``process``.
        state: the end.
        reason: of a dead letter.
        failures: handler errors at the end.
        stalls: deaths at the end, None for as many as the faults bring.
        raises: how often the handler raises before it returns.
        seconds: how long a run takes.
        bytes: size of the result.
        options: of the call.
    """

    task: str
    state: JobState = JobState.COMPLETED
    reason: str = ""
    failures: int = 0
    stalls: int | None = None
    raises: int = 0
    seconds: float = 0.0
    bytes: int = 0
    options: Mapping[str, Any] = {}


ANYWHERE = (*("coroutine",) * 5, *("thread",) * 2, "process")
FAILED = JobState.FAILED


def anywhere(number: int) -> str:
    """Return one of the tasks; a process is dear."""
    return ANYWHERE[number // 100 % len(ANYWHERE)]


PLANS: dict[Kind, Callable[[int], Plan]] = {
    Kind.PLAIN: lambda _: Plan(task="plain"),
    Kind.TIERED: lambda n: Plan(task="plain", options={"priority": n % 10}),
    Kind.THREAD: lambda _: Plan(task="thread"),
    Kind.PROCESS: lambda _: Plan(task="process"),
    Kind.RETRY: lambda n: Plan(
        task=anywhere(n),
        failures=1 + n % 3,
        raises=1 + n % 3,
        options={"max_attempts": 5, "retry": QUICKLY},
    ),
    Kind.FAIL: lambda n: Plan(
        task=anywhere(n),
        state=FAILED,
        reason=FailReason.EXHAUSTED,
        failures=2,
        raises=9,
        options={"max_attempts": 2, "retry": QUICKLY},
    ),
    Kind.PERMANENT: lambda _: Plan(
        task="coroutine", state=FAILED, reason=FailReason.PERMANENT, failures=1
    ),
    Kind.ODD: lambda n: Plan(
        task=anywhere(n),
        state=FAILED,
        reason=FailReason.EXHAUSTED,
        failures=1,
        options={"max_attempts": 1},
    ),
    Kind.SLOW: lambda n: Plan(task=anywhere(n), seconds=0.2 + n % 100 / 33),
    Kind.DELAYED: lambda n: Plan(task="plain", options={"delay": 0.2 + n % 30 / 10}),
    Kind.CANCEL: lambda n: Plan(task=anywhere(n), state=JobState.CANCELLED, seconds=CANCEL_S),
    Kind.WITHDRAWN: lambda _: Plan(
        task="plain", state=JobState.CANCELLED, options={"delay": CANCEL_S}
    ),
    Kind.LARGE: lambda n: Plan(task=anywhere(n), bytes=LARGE_BYTES),
    Kind.HEAVY: lambda _: Plan(task="plain"),
    Kind.BRIEF: lambda _: Plan(task="plain", options={"keep": 0}),
    Kind.HANG: lambda _: Plan(
        task="process",
        state=FAILED,
        reason=FailReason.EXHAUSTED,
        failures=1,
        seconds=HANGS_S,
        options={"max_attempts": 1, "timeout": TIMES_OUT_S},
    ),
    Kind.CRASH: lambda _: Plan(
        task="process",
        state=FAILED,
        reason=FailReason.STALLED,
        stalls=2,
        options={"max_stalls": 2},
    ),
    Kind.POISON: lambda _: Plan(
        task="coroutine",
        state=FAILED,
        reason=FailReason.STALLED,
        stalls=2,
        options={"max_stalls": 2},
    ),
}

ONE_IN: dict[Kind, int] = {
    Kind.TIERED: 20,
    Kind.THREAD: 40,
    Kind.PROCESS: 80,
    Kind.RETRY: 50,
    Kind.FAIL: 150,
    Kind.PERMANENT: 300,
    Kind.ODD: 300,
    Kind.SLOW: 100,
    Kind.DELAYED: 40,
    Kind.CANCEL: 150,
    Kind.WITHDRAWN: 200,
    Kind.LARGE: 300,
    Kind.HEAVY: 100,
    Kind.BRIEF: 60,
    Kind.HANG: 2500,
    Kind.CRASH: 2500,
    Kind.POISON: 8000,
}
"""How rare each kind is; all the rest are plain."""

REPEATABLE = frozenset({Kind.PLAIN, Kind.TIERED, Kind.RETRY, Kind.SLOW, Kind.THREAD, Kind.PROCESS})
"""Kinds whose id may come again: they complete and are kept, so that nothing changes."""

TO_BE_CANCELLED = frozenset({Kind.CANCEL, Kind.WITHDRAWN})
"""Kinds whose producer cancels them, for which it needs their handle."""


def number_of(label: str) -> int:
    """Return the number from which a label's plan is drawn."""
    return zlib.crc32(label.encode())


def kind_of(label: str) -> Kind:
    """Return a label's kind."""
    return Kind(label.partition(".")[0])


def plan_of(label: str) -> Plan:
    """Return what is to become of a job."""
    return PLANS[kind_of(label)](number_of(label))


def queue_of(label: str) -> str:
    """Return where a job waits: one in four in the second queue."""
    return QUEUES[number_of(label) % 4 == 0]


def answer(label: str) -> str:
    """Return what the handler returns."""
    return f"{label}={number_of(label):x}".ljust(plan_of(label).bytes, ".")

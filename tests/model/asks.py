"""What the machine may ask for: kinds of jobs, outcomes, settings and times, in tables.

Times to live are 0 or multiples of ten seconds, which is how exactly a server's can be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack, cast

import msgspec

from headrace.job import Claim, ErrorInfo, FailReason, JobState
from headrace.limit import Gate, Terms, gates_text
from headrace.outcome import (
    Cancelled,
    Completed,
    Failed,
    Outcome,
    PutBack,
    Retried,
    Snoozed,
    Stalled,
    Struck,
)
from headrace.request import JobRequest
from headrace.storage.incarnations import FreeSlots, IncarnationInfo, SlotsAsked
from headrace.storage.queues import QueueSettings, SettingChanges
from headrace.storage.values import Settlement
from headrace.strike import Strike, StrikeAction
from headrace.update import Update, UpdateRunAt
from tests.model.places import Record
from tests.model.subjects import QUEUE

SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
WEEK_MS = 7 * DAY_MS
LEASE_MS = 15 * SECOND_MS
ELSEWHERE = "elsewhere.1"
"""The channel of a waiter in another process."""
OURS = "ours"
"""Stands for the channel of the machine's own channel."""

IDS = ("a", "b", "c", "d")
UNKNOWN_ID = "nobody"
CLIENTS = ("c1", "c2")
READERS = ("archive", "alerts")
WORKERS = ("w1", "w2", "w3")
TASKS = {"w1": {"send": "default"}, "w2": {"send": "process", "other": "gpu"}}
"""What incarnations say of tasks; the third says nothing."""
DECLARED = {"w2": {"two": "1 0 0 0"}}
"""What they say of limits."""

CANCELLED_IN = (
    (JobState.QUEUED, JobState.BLOCKED),
    (JobState.SCHEDULED,),
    (JobState.RETRYING, JobState.ACTIVE),
    (JobState.BLOCKED,),
)
"""States of the jobs that a cancel of some states is about."""

TWO = Terms(2)
JOB_KINDS: dict[str, dict[str, Any]] = {
    "urgent": {"priority": 9},
    "fragile": {"priority": 0, "max_stalls": 1},
    "in a process": {"lane": "process"},
    "in the lane of its task": {"lane": ""},
    "in 1 ms": {"delay_ms": 1},
    "in an hour": {"delay_ms": HOUR_MS, "payload": b"." * 64},
    "at a time": {"run_in_ms": MINUTE_MS, "payload": b"." * 65},
    "at a past time": {"run_in_ms": -MINUTE_MS, "options": b"{}"},
    "expires in 1 s": {"expires_in_ms": SECOND_MS},
    "expires in an hour": {"expires_at_in_ms": HOUR_MS, "payload": b"." * 300},
    "expired": {"expires_at_in_ms": -1},
    "two lives": {"max_stalls": 2},
    "two lives, urgent": {"max_stalls": 2, "priority": 9},
    "mourned": {"on_failed": "other", "max_stalls": 1, "payload": b"." * 300},
    "mourned, expires in 1 s": {"on_failed": "send", "expires_in_ms": SECOND_MS},
    "once a minute": {"idempotency_key": "k", "idempotency_ttl_ms": MINUTE_MS},
    "once, not kept": {"idempotency_key": "k 2", "keep_ms": 0},
    "not kept": {"keep_ms": 0},
    "kept long": {"keep_ms": 2 * DAY_MS},
    "staying": {"replaces_ended": False},
    "with options": {"options": b'{"timeout_ms":5}\n{"max_attempts":5}'},
    "with retries": {"options": b'\n{"max_attempts":2}', "max_stalls": 2},
    "watched": {"channel": OURS},
    "watched, in a minute": {"channel": OURS, "delay_ms": MINUTE_MS},
    "watched elsewhere": {"channel": ELSEWHERE},
    "of two slots": {"slots": 2},
    "of three slots, urgent": {"slots": 3, "priority": 9},
    "of eleven slots": {"slots": 11},
    "limited, of two slots": {"gates": gates_text([Gate("one", "k", Terms(1))]), "slots": 2},
    "limited": {"gates": gates_text([Gate("one", "k", Terms(1))])},
    "limited, urgent": {"gates": gates_text([Gate("one", "k", Terms(1))]), "priority": 9},
    "limited, of another key": {"gates": gates_text([Gate("one", "", Terms(2))])},
    "limited twice": {"gates": gates_text([Gate("one", "k", Terms(1)), Gate("two", "", TWO)])},
    "limited the other way": {"gates": gates_text([Gate("two", "", TWO), Gate("one", "k")])},
    "limited by name": {"gates": gates_text([Gate("later", "k")])},
    "twice a minute": {"gates": gates_text([Gate("slow", "k", Terms(0, 2, MINUTE_MS, 2))])},
    "twice a minute, limited": {"gates": gates_text([Gate("slow", "k"), Gate("one", "k")])},
    "fair": {"gates": gates_text([Gate("fair", "k")])},
    "fair, of another key": {"gates": gates_text([Gate("fair", "")])},
    "fair, urgent": {"gates": gates_text([Gate("fair", "k")]), "priority": 9},
    "fair, limited": {"gates": gates_text([Gate("one", "k", Terms(1)), Gate("fair", "k")])},
    "fair, mourned, expires in 1 s": {
        "gates": gates_text([Gate("fair", "k")]),
        "expires_in_ms": SECOND_MS,
        "on_failed": "other",
    },
    "limited, expires in 1 s": {
        "gates": gates_text([Gate("one", "k", Terms(1))]),
        "expires_in_ms": SECOND_MS,
    },
}

HEAVY = tuple(kind for kind, options in sorted(JOB_KINDS.items()) if "slots" in options)
LIMITS = ("one", "two", "later", "slow")
TERMS = {
    "nothing": None,
    "one": Terms(1),
    "three": Terms(3),
    "one a minute": Terms(0, 1, MINUTE_MS, 1),
    "three a minute, two at once": Terms(2, 3, MINUTE_MS, 3),
}
"""What an operator sets for limits."""

STRIKES = {
    "task:send": Strike(id="task:send", task="send"),
    "task:other": Strike(id="task:other", task="other"),
    "strike:1": Strike(id="strike:1", task="send", where='{"to":"a"}'),
    "strike:2": Strike(id="strike:2", task="send", action=StrikeAction.CANCEL),
    "strike:3": Strike(id="strike:3", where='{"to":"b"}', action=StrikeAction.CANCEL),
    "strike:4": Strike(id="strike:4", task="send"),
}
"""What jobs are struck by."""
STRUCK_BY = "strike:1"
"""The one that workers say that they have met."""

UPDATES: dict[str, Update] = {
    "updates": Update(),
    "updates, at the same time": Update(run_at=UpdateRunAt.NEVER),
    "updates, if later": Update(run_at=UpdateRunAt.IF_LATER),
    "updates, if earlier": Update(run_at=UpdateRunAt.IF_EARLIER),
    "updates data": Update(run_at=UpdateRunAt.NEVER, retry=False),
    "updates the time": Update(data=False, retry=False),
    "updates retries": Update(data=False, run_at=UpdateRunAt.NEVER),
    "counts anew": Update(data=False, run_at=UpdateRunAt.NEVER, retry=False, reset_counts=True),
    "updates, counts anew": Update(reset_counts=True),
}
"""What an enqueue changes of the job that has its id."""

ALIKE = ("", "", "urgent", "staying")
"""Of which kind all jobs of a call are that says it once; mostly of none."""

ERROR = ErrorInfo(
    type="ValueError",
    message="no such\n\taddress " + "½" * 300,
    traceback='Traceback (most recent call last):\n  File "mail.py", line 12, in send\n    raise\n',
)
DEATH = ErrorInfo(type="WorkerDied", message="its beat stopped")
KILLED = ErrorInfo(type="ProcessDied", message="it was killed by signal 9")
UNKNOWN_TASK = ErrorInfo(type="UnknownTask", message="send")
MISFIT = ErrorInfo(type="ValidationError", message="Object missing required field `to`", start=3)

OUTCOMES: dict[str, Outcome] = {
    "completed": Completed(b"1", HOUR_MS, HOUR_MS),
    "completed, large": Completed(b"." * 65, HOUR_MS, HOUR_MS),
    "completed, too large to tell": Completed(b"." * 70_000, MINUTE_MS, HOUR_MS),
    "completed, no result": Completed(b"2", 0, HOUR_MS),
    "completed, result kept longer": Completed(b"3", HOUR_MS, MINUTE_MS),
    "completed, not kept": Completed(b"4", HOUR_MS, 0),
    "retried at once": Retried(0, ERROR),
    "retried in 1 ms": Retried(1, ERROR),
    "retried in a minute": Retried(MINUTE_MS, ERROR),
    "snoozed at once": Snoozed(0),
    "snoozed": Snoozed(5 * SECOND_MS, "not yet"),
    "failed": Failed(FailReason.EXHAUSTED, ERROR),
    "failed, no attempt": Failed(FailReason.UNDECODABLE, ERROR, is_attempt=False),
    "cancelled": Cancelled(HOUR_MS),
    "cancelled, not kept": Cancelled(0),
    "could not be stopped": Cancelled(HOUR_MS, "could_not_stop"),
    "stalled": Stalled(KILLED),
    "struck": Struck(STRUCK_BY),
    "struck by what is lifted": Struck("strike:9"),
    "put back at once": PutBack(0, UNKNOWN_TASK),
    "put back": PutBack(5 * SECOND_MS, UNKNOWN_TASK),
    "put back for a minute": PutBack(0, MISFIT, MINUTE_MS, FailReason.UNDECODABLE),
}

PUT_BACK_REASONS = (FailReason.UNKNOWN_TASK, FailReason.UNDECODABLE)

SLOTS: tuple[SlotsAsked, ...] = (
    {"default": 10, "process": 10},
    {"default": 1},
    {"default": 2},
    {"default": FreeSlots(1, 3)},
    {"default": FreeSlots(2, 11), "process": 1},
    {"process": 1, "default": 1},
    {"default": 0, "process": 2},
    {"default": 0},
    {"process": 3},
    {},
)

SAID: tuple[tuple[float | None, str], ...] = (
    (None, ""),
    (0.5, "half"),
    (0.5, "half of ½"),
    (1.0, ""),
)
"""Progress that attempts report."""


def _only(**changes: Unpack[SettingChanges]) -> SettingChanges:
    """Return changes that leave no other setting than these."""
    return cast(SettingChanges, msgspec.structs.asdict(QueueSettings(**changes)))


SETTINGS = {
    "default": _only(),
    "one of each": _only(history=1, dead_letters=1),
    "two, for an hour": _only(history=2, dead_letters=2, dead_letter_ttl_ms=HOUR_MS),
    "for a minute": _only(dead_letter_ttl_ms=MINUTE_MS),
    "all mourned": _only(on_failed="other"),
    "two at once": _only(max_active=2),
    "one of two ages": _only(aging=2),
    "one of three ages": _only(aging=3),
    "four wait": _only(max_length=4),
    "weighty": _only(weight=3),
}

STEPS_MS = (0, 1, 999, 5_000, LEASE_MS - 1, LEASE_MS, LEASE_MS + 1, MINUTE_MS, HOUR_MS, DAY_MS)

TAMPERING = ("", "", "", "", "epoch", "old epoch", "nonce", "id")
"""What is wrong with a claim that is shown; mostly nothing."""


def make_job(job_id: str, kinds: Sequence[str], *, now: int, channel: str) -> JobRequest:
    """Return a job of some kinds at once; later ones win."""
    options: dict[str, Any] = {"payload": b"[]"}
    for kind in kinds:
        options |= JOB_KINDS[kind] if kind in JOB_KINDS else {"update": UPDATES[kind]}
    if "update" in options:
        options.pop("replaces_ended", None)
    for relative, instant in (("run_in_ms", "run_at_ms"), ("expires_at_in_ms", "expires_at_ms")):
        if relative in options:
            options[instant] = now + options.pop(relative)
    if options.get("channel") == OURS:
        options["channel"] = channel
    is_plain = set(options) <= {"payload", "priority", "replaces_ended"}
    is_new = job_id not in IDS
    return JobRequest(
        id=job_id, queue=QUEUE, task="send", is_plain=is_plain, is_new_id=is_new, **options
    )


def settlement_of(job: Record, outcome: str) -> Settlement:
    """Return that an attempt, which a job is in, came to this."""
    return Settlement(job.id, Claim(job.epoch, job.nonce), 120, OUTCOMES[outcome])


def tampered(job_id: str, claim: Claim, how: str) -> tuple[str, Claim]:
    """Return a claim as somebody else might show it."""
    if how == "epoch":
        return job_id, Claim(claim.epoch + 1, claim.nonce)
    if how == "old epoch":
        return job_id, Claim(claim.epoch - 1, claim.nonce)
    if how == "nonce":
        return job_id, Claim(claim.epoch, claim.nonce + "0")
    return (UNKNOWN_ID if how == "id" else job_id), claim


def worker_of(name: str, channel: str = "") -> IncarnationInfo:
    """Return what an incarnation says of itself."""
    return IncarnationInfo(
        incarnation=name,
        name="mailer",
        host="host-1",
        pid=77,
        version="1.2.3",
        app_version="2025-11",
        concurrency=8,
        lease_ms=LEASE_MS,
        registered_ms=0,
        tasks=TASKS.get(name, {}),
        channel=channel,
        limits=DECLARED.get(name, {}),
    )

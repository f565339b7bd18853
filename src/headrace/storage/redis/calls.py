"""The arguments and replies of every verb that moves jobs; what operators ask is in `reports`.

No I/O: the async and the sync client both run these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from headrace.job import (
    DEFAULT_KEEP_MS,
    DEFAULT_MAX_STALLS,
    CancelOutcome,
    Claim,
    ClaimedJob,
    EnqueueOutcome,
    ErrorInfo,
    Job,
    JobState,
)
from headrace.outcome import (
    UNKNOWN_TASK_LIMIT_MS,
    Cancelled,
    Completed,
    Failed,
    PutBack,
    Retried,
    Stalled,
)
from headrace.storage.limits import DEFAULT_LEASE_MS
from headrace.storage.redis import keys
from headrace.storage.values import (
    DAMAGED_ERROR,
    Beat,
    BeatReply,
    CallId,
    ClaimReply,
    End,
    IncarnationInfo,
    Repaired,
    Report,
    Settlement,
    fraction_text,
)

T = TypeVar("T")
_BEAT = re.compile(rb"(-?\d{1,15}) (\d{1,15}) \d{1,15}", re.ASCII)
Word = str | bytes | int

CLAIM_WIDTH = 5
WATCH_WIDTH = 4


READS = frozenset({"get", "held", "list_jobs", "output", "stats", "watch", "workers"})
"""Verbs that may be called again after a lost answer, since twice is as good as once."""


class Call(NamedTuple, Generic[T]):
    """One function call: the verb, the queue's root, its arguments, and how to read the reply."""

    verb: str
    root: str
    words: Sequence[Word]
    read: Callable[[Any], T]


_OUTCOMES = {outcome.value.encode(): outcome for outcome in EnqueueOutcome}


def enqueue(root: str, jobs: Sequence[Job], call: CallId) -> Call[list[EnqueueOutcome]]:
    """Build ``enqueue``: a plain job takes four words, any other thirteen."""
    words: list[Word] = [call.client, call.number]
    extend = words.extend
    for job in jobs:
        drawn = "1" if job.is_new_id else "0"
        if job.is_plain:
            extend((job.id, f"{drawn}1{job.priority}", job.task, job.payload))
            continue
        extend(
            (
                job.id,
                f"{drawn}0{job.priority}",
                job.task,
                job.payload,
                job.lane,
                job.delay_ms,
                job.run_at_ms,
                job.expires_in_ms,
                job.expires_at_ms,
                _unless(job.max_stalls, DEFAULT_MAX_STALLS),
                _unless(job.keep_ms, DEFAULT_KEEP_MS),
                job.options,
                job.reply_to,
            )
        )
    return Call("enqueue", root, words, _read_outcomes)


def _unless(value: int, default: int) -> Word:
    return "" if value == default else value


def _read_outcomes(reply: bytes) -> list[EnqueueOutcome]:
    return [_OUTCOMES[word] for word in reply.split()]


def cancel(root: str, job_ids: Sequence[str]) -> Call[list[CancelOutcome]]:
    """Build ``cancel``."""
    return Call("cancel", root, job_ids, lambda reply: [CancelOutcome(w.decode()) for w in reply])


def watch(root: str, job_ids: Sequence[str], channel: str) -> Call[list[End]]:
    """Build ``watch``."""
    queue = keys.queue_of(root)

    def read(reply: list[bytes]) -> list[End]:
        rows = range(0, len(reply), WATCH_WIDTH)
        return [
            _end(queue, job_id, reply[at : at + WATCH_WIDTH])
            for job_id, at in zip(job_ids, rows, strict=True)
        ]

    return Call("watch", root, [channel, *job_ids], read)


def read_end(message: bytes) -> End:
    """Read a message of a channel; its six lines are written by ``lua/lib/finish.lua``."""
    root, job_id, *words = message.split(b"\n", 5)
    return _end(keys.queue_of(root.decode()), job_id.decode(), words)


def _end(queue: str, job_id: str, words: list[bytes]) -> End:
    state, reason, how, body = words
    is_whole = how == b"whole"
    known = None if state in (b"", b"deleted") else JobState(state.decode())
    return End(
        queue=queue,
        id=job_id,
        state=known,
        reason=text(reason),
        result=body if known is JobState.COMPLETED and is_whole else None,
        error=read_error(body) if known is JobState.FAILED and body else None,
        is_cut=how == b"cut",
    )


_error_encoder = msgspec.json.Encoder()
_error_decoder = msgspec.json.Decoder(ErrorInfo)


def read_error(entry: bytes) -> ErrorInfo:
    """Read an entry of the error list: the time and attempt that Lua wrote, then our JSON."""
    try:
        if entry.startswith(b"{"):
            return _error_decoder.decode(entry)
        at_ms, attempt, blob = entry.split(b" ", 2)
        return msgspec.structs.replace(
            _error_decoder.decode(blob), at_ms=int(at_ms), attempt=int(attempt)
        )
    except (ValueError, msgspec.MsgspecError):
        return DAMAGED_ERROR


def text(word: bytes | None) -> str:
    """Return a word as text, also one that a stranger wrote and that is none."""
    return (word or b"").decode(errors="replace")


def register(root: str, worker: IncarnationInfo) -> Call[None]:
    """Build ``register``."""
    words: list[Word] = [
        worker.incarnation,
        worker.lease_ms,
        msgspec.json.encode(worker),
        worker.channel,
    ]
    for task, lane in worker.tasks.items():
        words += (task, lane)
    return Call("register", root, words, _nothing)


def _nothing(_reply: Any) -> None:
    return None


def claim(root: str, call: CallId, nonce: str, slots: Mapping[str, int]) -> Call[ClaimReply]:
    """Build ``claim``. The nonce begins with the incarnation, so that a claim names its owner."""
    words: list[Word] = [call.client, call.number, nonce]
    for lane, limit in slots.items():
        words += (lane, limit)
    queue = keys.queue_of(root)

    def read(reply: list[bytes]) -> ClaimReply:
        due = int(reply[2])
        return ClaimReply(
            is_gone=reply[0] == b"gone",
            is_paused=reply[0] == b"paused",
            has_more=reply[1] == b"1",
            next_due_ms=None if due < 0 else due,
            jobs=_claimed(queue, nonce, reply),
        )

    return Call("claim", root, words, read)


def _claimed(queue: str, nonce: str, reply: list[bytes]) -> list[ClaimedJob]:
    jobs = []
    for at in range(3, len(reply), CLAIM_WIDTH):
        job_id, task, payload, numbers, options = reply[at : at + CLAIM_WIDTH]
        epoch, attempts, stalls, created_ms, waited_ms = map(int, numbers.split())
        jobs.append(
            ClaimedJob(
                id=job_id.decode(),
                queue=queue,
                task=text(task),
                payload=payload,
                claim=Claim(epoch, nonce),
                attempts=attempts,
                stalls=stalls,
                created_ms=created_ms,
                waited_ms=waited_ms,
                options=options,
            )
        )
    return jobs


def settle(root: str, settlements: Sequence[Settlement], call: CallId) -> Call[list[bool] | None]:
    """Build ``settle``; the reply is None for an unknown incarnation, False for a stale claim."""
    words: list[Word] = [call.client, call.number]
    for settlement in settlements:
        claim = settlement.claim
        words += (settlement.job_id, f"{claim.epoch}\t{claim.nonce}")
        _add_outcome(words, settlement)
    return Call("settle", root, words, _read_settled)


def _add_outcome(words: list[Word], settlement: Settlement) -> None:
    """Add kind, run_ms, two numbers, body; then reason and error type, unless it has completed."""
    run_ms = settlement.run_ms
    match settlement.outcome:
        case Completed(result, result_ttl_ms, keep_ms):
            words += ("completed", run_ms, result_ttl_ms, keep_ms, result)
        case Retried(delay_ms, error):
            words += ("retried", run_ms, delay_ms, 0, write_error(error), "", error.type)
        case Failed(reason, error, is_attempt):
            body = write_error(error)
            words += ("failed", run_ms, 0, int(is_attempt), body, reason.value, error.type)
        case Cancelled(keep_ms, why):
            words += ("cancelled", run_ms, 0, keep_ms, "", why, "")
        case Stalled(error):
            words += ("stalled", run_ms, 0, 0, write_error(error), "", error.type)
        case PutBack(delay_ms, error):
            body = write_error(error)
            words += ("put_back", "", delay_ms, UNKNOWN_TASK_LIMIT_MS, body, "", error.type)


def _read_settled(reply: bytes) -> list[bool] | None:
    if reply == b"unknown":
        return None
    return [word != b"stale" for word in reply.split()]


def write_error(error: ErrorInfo) -> bytes:
    """Encode an error for the history."""
    return _error_encoder.encode(error)


def put_back(root: str, jobs: Sequence[tuple[str, Claim]]) -> Call[int]:
    """Build ``put_back``."""
    words: list[Word] = []
    for job_id, claim in jobs:
        words += (job_id, claim.epoch, claim.nonce)
    return Call("put_back", root, words, int)


def report(root: str, reports: Sequence[Report]) -> Call[list[bool]]:
    """Build ``report``."""
    words: list[Word] = []
    for said in reports:
        fraction = "" if said.fraction is None else fraction_text(said.fraction)
        words += (said.job_id, said.claim.epoch, said.claim.nonce, fraction, said.text)
        words += (said.first, len(said.chunks), *said.chunks)
    return Call("report", root, words, lambda reply: [word == b"ok" for word in reply])


def held(root: str, incarnation: str) -> Call[list[tuple[str, Claim]]]:
    """Build ``held``."""

    def read(reply: list[bytes]) -> list[tuple[str, Claim]]:
        rows = zip(reply[::3], reply[1::3], reply[2::3], strict=True)
        return [(i.decode(), Claim(int(epoch), nonce.decode())) for i, epoch, nonce in rows]

    return Call("held", root, [incarnation], read)


def retire(root: str, incarnation: str) -> Call[int]:
    """Build ``retire``."""
    return Call("retire", root, [incarnation], int)


def beat(root: str, incarnation: str) -> Call[BeatReply]:
    """Build ``beat``."""

    def read(reply: list[bytes]) -> BeatReply:
        return BeatReply(is_gone=reply[0] == b"gone", cancel_ids=[i.decode() for i in reply[1:]])

    return Call("beat", root, [incarnation], read)


def read_beat(word: bytes) -> Beat:
    """Read a value of the beats hash: the count, -1 for a condemned one, lease and time.

    Rubbish counts as a first beat, as in ``lua/lib/incarnations.lua``: who lives soon writes the
    next one, and who doesn't is reaped.
    """
    match = _BEAT.fullmatch(word)
    if match is None:
        return Beat(count=0, lease_ms=DEFAULT_LEASE_MS, is_condemned=False)
    count, lease_ms = int(match[1]), int(match[2])
    return Beat(count=count, lease_ms=lease_ms, is_condemned=count < 0)


def read_beats(flat: Sequence[bytes]) -> dict[str, Beat]:
    """Read the beats hash. A name that is no text is no incarnation's."""
    found = {}
    for name, beat in zip(flat[::2], flat[1::2], strict=True):
        with suppress(UnicodeDecodeError):
            found[name.decode()] = read_beat(beat)
    return found


def reap(root: str, incarnation: str, seen: int, error: ErrorInfo) -> Call[int | None]:
    """Build ``reap``; None: the beat has moved."""
    words: list[Word] = [incarnation, seen, write_error(error)]
    return Call("reap", root, words, lambda reply: None if reply == b"moved" else int(reply))


def forget(root: str, incarnation: str) -> Call[bool]:
    """Build ``forget``."""
    return Call("forget", root, [incarnation], lambda reply: reply == b"ok")


def prune(root: str, cursor: str) -> Call[str]:
    """Build ``prune``."""
    return Call("prune", root, [cursor or "0"], bytes.decode)


WHOLE_WALK = "1\tf\t\t\t"
"""The cursor with which ``repair`` begins now, and looks at all places."""


def repair(root: str, cursor: str, lanes: Iterable[str]) -> Call[Repaired]:
    """Build ``repair``."""
    return Call(
        "repair", root, [cursor, *lanes], lambda reply: Repaired(reply[0].decode(), int(reply[1]))
    )


def restore(root: str, since_ms: int, seen: Sequence[tuple[bytes, bytes]]) -> Call[int]:
    """Build ``restore``: ids, with the generations of their ready entries that were seen."""
    return Call("restore", root, [since_ms, *(word for pair in seen for word in pair)], int)

"""The arguments and replies of what runs jobs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headrace.job import Claim, ClaimedJob
from headrace.outcome import (
    Cancelled,
    Completed,
    Failed,
    PutBack,
    Retried,
    Snoozed,
    Stalled,
    Struck,
)
from headrace.storage.incarnations import (
    BeatReply,
    ClaimReply,
    IncarnationInfo,
    SlotsAsked,
    free_slots,
)
from headrace.storage.lines import error_words, words_of
from headrace.storage.redis import keys
from headrace.storage.redis.calls.call import Call, Word, command, nothing, text, write_error
from headrace.storage.values import CallId, Report, Settlement, fraction_text

CLAIM_WIDTH = 5


def register(root: str, worker: IncarnationInfo) -> Call[None]:
    """Build ``register``."""
    words: list[Word] = [
        worker.incarnation,
        worker.lease_ms,
        msgspec.json.encode(worker),
        worker.channel,
        words_of(worker.name, worker.host, worker.version, worker.app_version),
        len(worker.tasks),
    ]
    for pair in (*worker.tasks.items(), *worker.limits.items()):
        words += pair
    return Call("register", root, words, nothing)


def claim(root: str, call: CallId, nonce: str, slots: SlotsAsked) -> Call[ClaimReply]:
    """Build ``claim``. The nonce begins with the incarnation, so that a claim names its owner."""
    words: list[Word] = [call.client, call.number, nonce]
    for lane, asked in slots.items():
        its = free_slots(asked)
        words += (lane, its.free, its.total)
    queue = keys.queue_of(root)

    def read(reply: list[bytes]) -> ClaimReply:
        due = int(reply[2])
        status, *said = reply[0].split()
        return ClaimReply(
            is_gone=status == b"gone",
            is_paused=status == b"paused",
            has_more=reply[1][:1] == b"1",
            next_due_ms=None if due < 0 else due,
            jobs=_claimed(queue, nonce, reply),
            awaited=_awaited(reply[1]) if len(reply[1]) > 1 else {},
            strikes=_number(said, b"strikes="),
            weight=_number(said, b"weight="),
        )

    return Call("claim", root, words, read)


def _awaited(word: bytes) -> dict[str, int]:
    """Read what stands behind whether there is more: each lane, and the slots needed there."""
    lanes, counts = word.decode().split()[1::2], word.split()[2::2]
    return dict(zip(lanes, map(int, counts), strict=True))


def _number(said: Sequence[bytes], name: bytes) -> int:
    """Return what a claim tells of a queue where there is anything to tell, else 0."""
    return next((int(word[len(name) :]) for word in said if word.startswith(name)), 0)


def _claimed(queue: str, nonce: str, reply: list[bytes]) -> list[ClaimedJob]:
    jobs = []
    for at in range(3, len(reply), CLAIM_WIDTH):
        job_id, task, payload, numbers, options = reply[at : at + CLAIM_WIDTH]
        epoch, failures, stalls, created_ms, waited_ms, *slots = map(int, numbers.split())
        jobs.append(
            ClaimedJob(
                id=job_id.decode(),
                queue=queue,
                task=text(task),
                payload=payload,
                claim=Claim(epoch, nonce),
                failures=failures,
                stalls=stalls,
                created_ms=created_ms,
                waited_ms=waited_ms,
                options=options,
                slots=slots[0] if slots else 1,
            )
        )
    return jobs


def wait(tenant: str, queue: str, lane: str, block_s: float) -> Call[bool]:
    """Build what blocks until a lane has a token, and moves it to those that were taken."""
    root = keys.root(tenant, queue)
    ends = (keys.wake(tenant, queue, lane), keys.woken(tenant, queue), "LEFT", "RIGHT")
    return command("wait", root, "BLMOVE", *ends, f"{block_s:.3f}", read=_is_token)


def _is_token(reply: bytes | None) -> bool:
    return reply is not None


def settle(root: str, settlements: Sequence[Settlement], call: CallId) -> Call[list[bool] | None]:
    """Build ``settle``; the reply is None for an unknown incarnation, False for a stale claim."""
    words: list[Word] = [call.client, call.number]
    for settlement in settlements:
        claim = settlement.claim
        words += (settlement.job_id, f"{claim.epoch}\t{claim.nonce}")
        _add_outcome(words, settlement)
    return Call("settle", root, words, _read_settled)


def _add_outcome(words: list[Word], settlement: Settlement) -> None:
    """Add kind, run_ms, two numbers, body; then reason and an error's words, unless completed."""
    run_ms = settlement.run_ms
    match settlement.outcome:
        case Completed(result, result_ttl_ms, keep_ms):
            words += ("completed", run_ms, result_ttl_ms, keep_ms, result)
        case Retried(delay_ms, error):
            words += ("retried", run_ms, delay_ms, 0, write_error(error), "", error_words(error))
        case Snoozed(delay_ms, why):
            words += ("snoozed", run_ms, delay_ms, 0, "", words_of(why), "")
        case Failed(reason, error, is_attempt):
            body = write_error(error)
            words += ("failed", run_ms, 0, int(is_attempt), body, reason.value, error_words(error))
        case Cancelled(keep_ms, why):
            words += ("cancelled", run_ms, 0, keep_ms, "", why, "")
        case Stalled(error):
            words += ("stalled", run_ms, 0, 0, write_error(error), "", error_words(error))
        case Struck(strike):
            words += ("struck", "", 0, 0, "", strike, "")
        case PutBack(delay_ms, error, limit_ms, reason):
            body = write_error(error)
            words += ("put_back", "", delay_ms, limit_ms, body, reason.value, error_words(error))


def _read_settled(reply: bytes) -> list[bool] | None:
    if reply == b"unknown":
        return None
    return [word != b"stale" for word in reply.split()]


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

"""The arguments and the reply of ``why``."""

from __future__ import annotations

from typing import Any

from headrace.limit import read_terms
from headrace.storage.redis import keys
from headrace.storage.redis.calls.call import Call, read_number, text
from headrace.storage.redis.calls.inspector import read_worker
from headrace.storage.redis.calls.reading import read_record
from headrace.storage.redis.calls.striker import read_strikes
from headrace.storage.situation import Before, GateStanding, NextRun, Situation


def why(root: str, job_id: str) -> Call[Situation | None]:
    """Build ``why``."""

    def read(reply: list[Any]) -> Situation | None:
        return _situation(keys.queue_of(root), reply) if reply else None

    return Call("why", root, [job_id], read)


def _situation(queue: str, reply: list[Any]) -> Situation:
    record, now, paused, max_active, active, before, successor, gates = reply[:8]
    struck, struck_before, owner, workers, more = reply[8:]
    return Situation(
        record=read_record(queue, record),
        now_ms=int(now),
        is_paused=paused == b"1",
        max_active=read_number(max_active),
        active=read_number(active),
        before=_before(before),
        next=NextRun(*map(read_number, successor)) if successor else None,
        gates=[_gate(*words) for words in gates],
        strikes=read_strikes(struck),
        struck_before=_before(struck_before),
        owner=read_worker(owner) if owner else None,
        workers=[read_worker(words) for words in workers],
        has_more_workers=more == b"1",
    )


def _before(word: bytes) -> Before | None:
    number = word.removeprefix(b">")
    return Before(read_number(number), is_least=number != word) if word else None


def _gate(name: bytes, terms: bytes, *words: bytes) -> GateStanding:
    ready, active, tokens, token_in_ms, before, *holders = words
    limit, _, key = text(name).partition("\t")
    return GateStanding(
        name=limit,
        key=key,
        terms=read_terms(text(terms)),
        ready=read_number(ready),
        active=read_number(active),
        tokens=read_number(tokens),
        token_in_ms=read_number(token_in_ms) if token_in_ms else None,
        before=_before(before),
        holders=list(map(text, holders)),
    )

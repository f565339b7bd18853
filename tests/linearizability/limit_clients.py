"""A client that uses two keys of a limit at random, and records what it asked and was answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from headrace.job import ClaimedJob, FailReason
from headrace.limit import Gate, Terms, gates_text
from headrace.outcome import Completed, Failed, Outcome, Retried
from headrace.request import JobRequest
from headrace.storage.incarnations import ClaimReply
from headrace.storage.values import Settlement
from tests.linearizability.caller import Answer, Caller
from tests.linearizability.checker import Operation, check
from tests.linearizability.history import shown
from tests.linearizability.limits import (
    Call,
    Cancel,
    Claim,
    Counts,
    Enqueue,
    KeySpecification,
    Kind,
    Look,
    Outcomes,
    PutBack,
    Reply,
    Settle,
    Taken,
)
from tests.linearizability.spec import LASTING
from tests.linearizability.terms import ERROR

LIMIT = "limit"
KEYS = ("x", "y")
OUTCOMES: dict[Kind, Outcome] = {
    "completed": Completed(b"1", LASTING, LASTING),
    "failed": Failed(FailReason.EXHAUSTED, ERROR),
    "retried": Retried(0, ERROR),
}


class KeyEntry(msgspec.Struct, frozen=True, tag=True):
    """One call as far as it is about one key; ``returned`` None: its outcome is unknown."""

    key: str
    client: str
    call: Call
    invoked: int
    returned: int | None
    reply: Reply | None

    @property
    def operation(self) -> Operation[Call, Reply]:
        """What the checker needs of it."""
        return Operation(self.call, self.invoked, self.returned, self.reply)


def problems(entries: Iterable[KeyEntry], *, limit: int) -> list[str]:
    """Return a text for each key whose calls no order explains."""
    by_key = defaultdict(list)
    for entry in entries:
        by_key[entry.key].append(entry)
    found = []
    for key, own in by_key.items():
        verdict = check(KeySpecification(limit), [entry.operation for entry in own])
        if not verdict.is_linearizable:
            found.append(f"no order explains what happened to {key}\n{shown(own, verdict)}")
    return found


class LimitClient:
    """Enqueues jobs of two keys under ids of its own, claims, and gives up what it was given.

    Args:
        caller: who calls.
        limit: how many of a key may have a place.
    """

    def __init__(self, caller: Caller, *, limit: int) -> None:
        self.lines: list[KeyEntry] = []
        self._caller = caller
        self._storage = caller.storage
        self._queue = caller.queue
        self._random = caller.random
        self._terms = Terms(limit)
        self._ids: list[str] = []
        self._held: list[ClaimedJob] = []

    async def run(self, calls: int) -> None:
        """Register, then make that many calls."""
        await self._caller.register()
        verbs: dict[Callable[[], Any], int] = {
            self._enqueue: 8,
            self._claim: 9,
            self._settle: 8,
            self._put_back: 3,
            self._cancel: 2,
            self._look: 3,
        }
        for verb in self._random.choices(list(verbs), weights=list(verbs.values()), k=calls):
            await verb()

    async def look(self) -> None:
        """See how each key stands, and run all that can still run."""
        await self._caller.register()
        await self._look()
        while await self._claim(len(KEYS) * self._terms.concurrency + 1):
            while self._held:
                await self._settle("completed")
        await self._look()

    def _note(
        self, calls: Mapping[str, Call], answer: Answer[Any], replies: Mapping[str, Reply]
    ) -> None:
        """Record a call, unless it surely had no effect."""
        if answer.returned is None and not answer.may_have_run:
            return
        self.lines += [
            KeyEntry(
                key, self._caller.name, call, answer.invoked, answer.returned, replies.get(key)
            )
            for key, call in calls.items()
        ]

    async def _enqueue(self) -> None:
        jobs = [self._new_job() for _ in range(self._random.randint(1, 3))]
        answer = await self._caller.ask_numbered(
            "enqueue",
            lambda call: self._storage.enqueue(self._queue, jobs, call=call),
            repetitions=3,
        )
        words: Sequence[object] = answer.reply or []
        told = dict(zip((job.id for job in jobs), map(str, words), strict=False))
        calls: dict[str, Call] = {}
        replies: dict[str, Reply] = {}
        for key in KEYS:
            if own := tuple(job.id for job in jobs if _key_of(job.id) == key):
                calls[key] = Enqueue(own)
                replies[key] = Outcomes(tuple(told.get(job_id, "") for job_id in own))
        self._note(calls, answer, replies)

    def _new_job(self) -> JobRequest:
        key = self._random.choice(KEYS)
        self._ids.append(f"{key}-{self._caller.name}-{len(self._ids)}")
        return JobRequest(
            id=self._ids[-1],
            queue=self._queue,
            task="send",
            payload=b"[]",
            gates=gates_text([Gate(LIMIT, key, self._terms)]),
        )

    async def _claim(self, slots: int = 0) -> bool:
        """Claim; whether jobs came."""
        free = slots or self._random.randint(1, 3)
        nonce = f"{self._caller.incarnation}/{self._random.getrandbits(64):x}"
        answer = await self._caller.ask_numbered(
            "claim",
            lambda call: self._storage.claim(
                self._queue, call=call, nonce=nonce, slots={"default": free}
            ),
            repetitions=3,
        )
        reply: ClaimReply | None = answer.reply
        jobs = reply.jobs if reply else []
        self._held += jobs
        taken: dict[str, Reply] = {
            key: Taken(
                tuple(sorted(job.id for job in jobs if _key_of(job.id) == key)),
                has_slots=len(jobs) < free,
            )
            for key in KEYS
        }
        self._note(dict.fromkeys(KEYS, Claim()), answer, taken)
        return bool(jobs)

    async def _settle(self, outcome: Kind | None = None) -> None:
        if not self._held:
            return
        job = self._held.pop(self._random.randrange(len(self._held)))
        said = self._random.choice(list(OUTCOMES)) if outcome is None else outcome
        call, settlement = Settle(job.id, said), Settlement(job.id, job.claim, 7, OUTCOMES[said])
        answer = await self._caller.ask_numbered(
            "settle",
            lambda number: self._storage.settle(self._queue, [settlement], call=number),
            repetitions=3,
        )
        word = "ok" if answer.reply == [True] else str(answer.reply)
        self._note({_key_of(job.id): call}, answer, {_key_of(job.id): word})

    async def _put_back(self) -> None:
        if not self._held:
            return
        job = self._held.pop(self._random.randrange(len(self._held)))
        incarnation = self._caller.incarnation
        answer = await self._caller.ask(
            "put_back",
            lambda: self._storage.put_back(self._queue, incarnation, [(job.id, job.claim)]),
        )
        self._note({_key_of(job.id): PutBack(job.id)}, answer, {_key_of(job.id): "done"})

    async def _cancel(self) -> None:
        if not self._ids:
            return
        job_id = self._random.choice(self._ids[-6:])
        answer = await self._caller.ask(
            "cancel", lambda: self._storage.cancel(self._queue, [job_id])
        )
        word = str(answer.reply[0]) if answer.reply else ""
        self._note({_key_of(job_id): Cancel(job_id)}, answer, {_key_of(job_id): word})

    async def _look(self) -> None:
        for key in KEYS:
            answer = await self._caller.ask("gate", self._gate(key))
            if gate := answer.reply:
                counts = Counts(gate.ready, gate.active, gate.blocked)
                self._note({key: Look()}, answer, {key: counts})

    def _gate(self, key: str) -> Callable[[], Any]:
        return lambda: self._storage.gate(self._queue, LIMIT, key)


def _key_of(job_id: str) -> str:
    return job_id.partition("-")[0]

"""A client that uses a few job ids at random, and records what it asked and was answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from headrace.job import Claim as Token
from headrace.storage.incarnations import ClaimReply
from headrace.storage.values import Settlement
from headrace.update import Update, UpdateRunAt
from tests.linearizability.caller import Answer, Caller
from tests.linearizability.history import Line
from tests.linearizability.spec import (
    GONE,
    LASTING,
    NO_ROOM,
    NOT_CLAIMED,
    OUTCOMES,
    WRITTEN,
    Call,
    Cancel,
    Claim,
    Claimed,
    Enqueue,
    Get,
    PutBack,
    Reap,
    Reply,
    Settle,
    Write,
)
from tests.linearizability.terms import ERROR, job_request, outcome_of, seen
from tests.linearizability.writing import write


class Held(NamedTuple):
    """One claim that was answered: who has it, of which job."""

    incarnation: str
    job_id: str
    epoch: int
    nonce: str


class Board:
    """What the clients of one process know of each other."""

    def __init__(self) -> None:
        self.incarnations: list[str] = []
        self.claims: list[Held] = []


class RandomClient:
    """Calls every verb at random, with right claims and false ones.

    Args:
        caller: who calls.
        job_ids: the ids that it uses.
        board: what it shares with others.
    """

    def __init__(self, caller: Caller, *, job_ids: Sequence[str], board: Board) -> None:
        self.lines: list[Line] = []
        self._caller = caller
        self._storage = caller.storage
        self._queue = caller.queue
        self._random = caller.random
        self._job_ids = job_ids
        self._board = board
        self._unique = 0

    async def run(self, calls: int) -> None:
        """Register, then make that many calls."""
        await self._register()
        verbs = {
            self._enqueue: 19,
            self._write: 6,
            self._claim: 26,
            self._settle: 26,
            self._cancel: 8,
            self._put_back: 6,
            self._reap: 3,
            self._get: 6,
        }
        for verb in self._random.choices(list(verbs), weights=list(verbs.values()), k=calls):
            await verb()

    async def look(self) -> None:
        """Read every job once, then claim whatever is ready: what should be there must come."""
        await self._register()
        for job_id in self._job_ids:
            await self._read(job_id)
        await self._claim_some(len(self._job_ids) + 1)

    async def _register(self) -> None:
        await self._caller.register()
        self._board.incarnations.append(self._caller.incarnation)

    def _note(self, job_id: str, call: Call, answer: Answer[Any], reply: Reply) -> None:
        """Record a call, unless it surely had no effect on this job."""
        line = Line(job_id, self._caller.name, call, answer.invoked, answer.returned, reply)
        if answer.returned is None:
            if answer.may_have_run:
                self.lines.append(msgspec.structs.replace(line, reply=None))
            return
        if reply == GONE and answer.may_have_run:
            # Condemned before this answer: what the call did before that is unknown.
            self.lines.append(msgspec.structs.replace(line, returned=None, reply=None))
            line = msgspec.structs.replace(line, invoked=answer.last)
        self.lines.append(line)

    def _new(self, what: str) -> str:
        self._unique += 1
        return f"{what}-{self._caller.name}-{self._unique}"

    def _some_ids(self) -> list[str]:
        most = min(2, len(self._job_ids))
        return self._random.sample(self._job_ids, self._random.randint(1, most))

    def _repetitions(self) -> int:
        """Return how often to repeat a call without an answer: some callers give up at once."""
        return self._random.choice((0, 3, 3, 3))

    def _keep_ms(self) -> int:
        return self._random.choice((0, LASTING))

    def _some_word(self) -> str:
        """Return what an enqueue changes of the job that has its id: mostly nothing."""
        if self._random.random() < 0.6:
            return ""
        run_at = self._random.choice(list(UpdateRunAt))
        parts = [self._random.random() < likely for likely in (0.7, 0.5, 0.2)]
        return Update(parts[0], run_at, *parts[1:]).word

    def _some_jobs(self) -> dict[str, Enqueue]:
        return {
            job_id: Enqueue(
                self._new("p"),
                keep_ms=self._keep_ms(),
                max_stalls=self._random.choice((1, 2, 3)),
                is_delayed=self._random.random() < 0.1,
                replaces_ended=self._random.random() < 0.7,
            )
            for job_id in self._some_ids()
        }

    async def _enqueue(self) -> None:
        calls = self._some_jobs()
        for job_id, call in calls.items():
            if word := self._some_word():
                calls[job_id] = msgspec.structs.replace(call, update=word, replaces_ended=True)
        jobs = [job_request(job_id, self._queue, call) for job_id, call in calls.items()]
        answer = await self._caller.ask_numbered(
            "enqueue",
            lambda number: self._storage.enqueue(self._queue, jobs, call=number),
            repetitions=self._repetitions(),
        )
        verdicts: Sequence[object] = answer.reply or [""] * len(jobs)
        for (job_id, call), verdict in zip(calls.items(), verdicts, strict=True):
            self._note(job_id, call, answer, str(verdict))

    async def _write(self) -> None:
        calls = self._some_jobs()
        jobs = [job_request(job_id, self._queue, call) for job_id, call in calls.items()]
        answer = await write(self._caller, self._new("w"), jobs, repetitions=self._repetitions())
        for job_id, call in calls.items():
            self._note(job_id, Write(call), answer, WRITTEN)

    async def _claim(self) -> None:
        await self._claim_some(self._random.randint(1, len(self._job_ids)))

    async def _claim_some(self, limit: int) -> None:
        call = Claim(f"{self._caller.incarnation}/{self._new('n')}")
        claim, slots = self._storage.claim, {"default": limit}
        answer = await self._caller.ask_numbered(
            "claim",
            lambda number: claim(self._queue, call=number, nonce=call.nonce, slots=slots),
            repetitions=self._repetitions(),
        )
        reply = answer.reply or ClaimReply(
            is_gone=False, is_paused=False, has_more=False, next_due_ms=None, jobs=[]
        )
        jobs = {job.id: job for job in reply.jobs}
        for job_id in self._job_ids:
            if reply.is_gone:
                self._note(job_id, call, answer, GONE)
            elif job := jobs.get(job_id):
                claimed = Claimed(job.claim.epoch, job.payload.decode(), job.failures, job.stalls)
                self._note(job_id, call, answer, claimed)
                held = Held(self._caller.incarnation, job_id, job.claim.epoch, job.claim.nonce)
                self._board.claims.append(held)
            else:
                self._note(job_id, call, answer, NOT_CLAIMED if len(jobs) < limit else NO_ROOM)
        if reply.is_gone:
            await self._register()

    def _some_claim(self) -> Held:
        """Return a claim: mostly one of this client's newest, else an old, foreign or false one."""
        known = self._board.claims
        own = [held for held in known if held.incarnation == self._caller.incarnation]
        if own and self._random.random() < 0.75:
            return self._random.choice(own[-4:])
        false = f"{self._caller.incarnation}/false"
        if not known:
            return Held(self._caller.incarnation, self._random.choice(self._job_ids), 1, false)
        held = self._random.choice(known)
        off_by_one = held.epoch + self._random.choice((-1, 1))
        return self._random.choice(
            (held, held._replace(epoch=off_by_one), held._replace(nonce=false))
        )

    async def _settle(self) -> None:
        claims = {held.job_id: held for held in (self._some_claim(), self._some_claim())}
        calls = {
            job_id: Settle(
                self._caller.incarnation,
                held.epoch,
                held.nonce,
                self._random.choice(OUTCOMES),
                self._keep_ms(),
                self._new("r"),
            )
            for job_id, held in claims.items()
        }
        settlements = [
            Settlement(job_id, Token(call.epoch, call.nonce), 7, outcome_of(call))
            for job_id, call in calls.items()
        ]
        answer = await self._caller.ask_numbered(
            "settle",
            lambda number: self._storage.settle(self._queue, settlements, call=number),
            repetitions=self._repetitions(),
        )
        is_gone = answer.returned is not None and answer.reply is None
        verdicts = answer.reply or [False] * len(calls)
        for (job_id, call), is_current in zip(calls.items(), verdicts, strict=True):
            self._note(job_id, call, answer, GONE if is_gone else "ok" if is_current else "stale")
        if is_gone:
            await self._register()

    async def _cancel(self) -> None:
        job_ids, call = self._some_ids(), Cancel(self._random.random() < 0.3)
        cancel = self._storage.cancel
        answer = await self._caller.ask(
            "cancel", lambda: cancel(self._queue, job_ids, only_next=call.only_next)
        )
        verdicts: Sequence[str] = answer.reply or [""] * len(job_ids)
        for job_id, verdict in zip(job_ids, verdicts, strict=True):
            self._note(job_id, call, answer, str(verdict))

    async def _put_back(self) -> None:
        held = self._some_claim()
        jobs = [(held.job_id, Token(held.epoch, held.nonce))]
        put_back = self._storage.put_back
        answer = await self._caller.ask(
            "put_back", lambda: put_back(self._queue, held.incarnation, jobs)
        )
        self._note(held.job_id, PutBack(held.epoch, held.nonce), answer, "done")

    async def _reap(self) -> None:
        call = Reap(self._random.choice(self._board.incarnations), self._random.choice((0, 0, 7)))
        reap, name, seen = self._storage.reap, call.incarnation, call.seen
        answer = await self._caller.ask(
            "reap", lambda: reap(self._queue, name, seen=seen, error=ERROR)
        )
        for job_id in self._job_ids:
            self._note(job_id, call, answer, "moved" if answer.reply is None else "taken back")

    async def _get(self) -> None:
        await self._read(self._random.choice(self._job_ids))

    async def _read(self, job_id: str) -> None:
        answer = await self._caller.ask("get", lambda: self._storage.get(self._queue, job_id))
        if answer.returned is not None:
            self._note(job_id, Get(), answer, seen(answer.reply))

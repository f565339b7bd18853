"""Hands that race for jobs, and write down what they hold, and from when until when.

A hand holds a job from the answer to its claim until just before it asks for what gives the job up.
So two that hold one id at a time are two active jobs of it, whatever else happens.
"""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from headrace.job import ADDED, Claim, ClaimedJob, ErrorInfo, FailReason, JobState
from headrace.outcome import Cancelled, Completed, Failed, Outcome, PutBack, Retried, Snoozed
from headrace.request import JobRequest
from headrace.storage.base import Storage
from headrace.storage.incarnations import IncarnationInfo
from headrace.storage.values import CallId, Settlement

QUEUE = "mail"
MOST_HELD = 2
KEPT_MS = 3_600_000
ERROR = ErrorInfo(type="ValueError", message="no such address")
OUTCOMES: tuple[Outcome, ...] = (
    *(
        Completed(b"1", KEPT_MS, KEPT_MS),
        Completed(b"1", 0, 0),
        Failed(FailReason.EXHAUSTED, ERROR),
    ),
    *(Cancelled(KEPT_MS), Cancelled(0), Retried(0, ERROR), Retried(2, ERROR), Snoozed(1)),
    *(PutBack(0, ERROR), PutBack(1, ERROR)),
)


class Hold(msgspec.Struct, frozen=True):
    """One claim: of which job, and when it was held, in ns of the clock that processes share.

    It was made between ``asked`` and ``since``.
    """

    job_id: str
    epoch: int
    nonce: str
    asked: int
    since: int
    until: int


class Told(msgspec.Struct):
    """What a process has to tell: what it held, what it did, and what was wrong.

    ``stored`` are the ids that it has brought in, ``purged`` those that it has deleted.
    """

    holds: list[Hold]
    did: dict[str, int]
    problems: list[str]
    stored: list[str] = []
    purged: list[str] = []


class Held(NamedTuple):
    """A claim that is not given up yet."""

    job_id: str
    claim: Claim
    asked: int
    since: int


class Hand(ABC):
    """A producer, a worker and an operator at once.

    Args:
        storage: of its process.
        name: unlike any other hand's.
        seed: of its choices.
    """

    def __init__(self, storage: Storage, name: str, seed: str) -> None:
        self.holds: list[Hold] = []
        self.did: Counter[str] = Counter()
        self.problems: list[str] = []
        self.stored: list[str] = []
        self.purged: list[str] = []
        self.storage = storage
        self.name = name
        self.random = random.Random(seed)
        self._lives = 0
        self._numbers: Counter[str] = Counter()
        self._held: list[Held] = []

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """What its attempts come to."""
        return OUTCOMES

    async def run(self, steps: int) -> None:
        """Register, do that many things, and give all up."""
        await self._register()
        verbs: dict[Callable[[], Awaitable[None]], int] = {
            self._enqueue: 34,
            self._claim: 30,
            self._settle: 30,
            self._put_back: 5,
            self._die: 3,
            self._cancel: 6,
            self.operate: 5,
        }
        for verb in self.random.choices(list(verbs), weights=list(verbs.values()), k=steps):
            await verb()
        while self._held:
            await self._settle()

    @property
    def _incarnation(self) -> str:
        return f"{self.name}.{self._lives}"

    def _call(self, what: str) -> CallId:
        self._numbers[what] += 1
        return CallId(what, self._numbers[what])

    async def _register(self) -> None:
        self._lives += 1
        info = IncarnationInfo(
            incarnation=self._incarnation,
            name=self.name,
            host="here",
            pid=0,
            version="0",
            concurrency=1,
            lease_ms=KEPT_MS,
            registered_ms=0,
        )
        await self.storage.register(QUEUE, info)

    @abstractmethod
    def new_jobs(self) -> list[JobRequest]:
        """Return what it enqueues in one call."""

    @abstractmethod
    def some_id(self) -> str:
        """Return an id to cancel or to purge."""

    def held_ids(self) -> list[str]:
        """Return the ids of the jobs that it holds."""
        return [held.job_id for held in self._held]

    async def operate(self) -> None:
        """Do what operators do: purge a job, if it is in a state."""
        job_id, state = self.some_id(), self.random.choice(list(JobState))
        purged = await self.storage.purge(QUEUE, state, [job_id])
        self.did["purge"] += purged
        self.purged += [job_id] * purged

    async def _enqueue(self) -> None:
        await self.enqueue(self.new_jobs())

    async def enqueue(self, jobs: Sequence[JobRequest]) -> None:
        """Bring jobs in with one call."""
        outcomes = await self.storage.enqueue(QUEUE, jobs, call=self._call(self.name))
        self.did.update(f"enqueue: {outcome}" for outcome in outcomes)
        self.stored += [
            job.id for job, outcome in zip(jobs, outcomes, strict=True) if outcome in ADDED
        ]

    async def _claim(self) -> None:
        if len(self._held) >= MOST_HELD:
            return
        call = self._call(f"{self._incarnation}")
        nonce = f"{self._incarnation}/{call.number}"
        asked = time.monotonic_ns()
        reply = await self.storage.claim(QUEUE, call=call, nonce=nonce, slots={"default": 1})
        now = time.monotonic_ns()
        self._held += [Held(job.id, job.claim, asked, now) for job in reply.jobs]
        self.did["claim"] += len(reply.jobs)

    def _give_up(self, given: Sequence[Held]) -> None:
        """Write down that claims are given up, before anybody can know of it."""
        now = time.monotonic_ns()
        for held in given:
            self._held.remove(held)
            claim, times = held.claim, (held.asked, held.since, now)
            self.holds.append(Hold(held.job_id, claim.epoch, claim.nonce, *times))

    async def _settle(self) -> None:
        if not self._held:
            return
        held, outcome = self.random.choice(self._held), self.random.choice(self.outcomes)
        self._give_up([held])
        call = CallId(self._incarnation, self._call(f"{self._incarnation} settles").number)
        settlement = Settlement(held.job_id, held.claim, 1, outcome)
        if await self.storage.settle(QUEUE, [settlement], call=call) != [True]:
            self.problems.append(f"{outcome} of {held} was not taken")
        self.did[f"settle: {type(outcome).__name__}"] += 1
        if isinstance(outcome, Failed) and self.random.random() < 0.8:
            self.did["redrive"] += await self.storage.redrive(QUEUE, [held.job_id])

    async def _put_back(self) -> None:
        given = self._held[:]
        self._give_up(given)
        jobs = [(held.job_id, held.claim) for held in given]
        await self.storage.put_back(QUEUE, self._incarnation, jobs)
        self.did["put back"] += len(given)

    async def _die(self) -> None:
        """Have all that it holds taken back, as of a dead worker or one that retires."""
        given, name = self._held[:], self._incarnation
        self._give_up(given)
        if self.random.random() < 0.5:
            await self.storage.reap(QUEUE, name, seen=0, error=ERROR)
            self.did["reap"] += len(given)
        else:
            await self.storage.retire(QUEUE, name)
            self.did["retire"] += len(given)
        await self._register()

    async def _cancel(self) -> None:
        only_next = self.random.random() < 0.4
        outcomes = await self.storage.cancel(QUEUE, [self.some_id()], only_next=only_next)
        self.did[f"cancel{' the next' * only_next}: {outcomes[0]}"] += 1


async def drain(storage: Storage, *, slots: int = 10) -> list[ClaimedJob]:
    """Complete all that is left, so many at a time; return it in its order."""
    info = IncarnationInfo(
        incarnation="last",
        name="last",
        host="here",
        pid=0,
        version="0",
        concurrency=1,
        lease_ms=KEPT_MS,
        registered_ms=0,
    )
    await storage.register(QUEUE, info)
    drained: list[ClaimedJob] = []
    number = 0
    while True:
        number += 1
        call = CallId("last", number)
        reply: Any = await storage.claim(
            QUEUE, call=call, nonce=f"last/{number}", slots={"default": slots}
        )
        if not reply.jobs and reply.next_due_ms is None:
            return drained
        drained += reply.jobs
        done = [Settlement(job.id, job.claim, 1, OUTCOMES[0]) for job in reply.jobs]
        await storage.settle(QUEUE, done, call=call)

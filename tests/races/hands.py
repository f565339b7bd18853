"""Hands that race for a few job ids, and write down what they hold, and from when until when.

A hand holds a job from the answer to its claim until just before it asks for what gives the job up.
So two that hold one id at a time are two active jobs of it, whatever else happens.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from headrace.job import Claim, ClaimedJob, ErrorInfo, FailReason, JobState
from headrace.outcome import Cancelled, Completed, Failed, Outcome, PutBack, Retried, Snoozed
from headrace.request import JobRequest
from headrace.storage.base import Storage
from headrace.storage.values import CallId, IncarnationInfo, Settlement
from headrace.update import Update, UpdateRunAt

QUEUE = "mail"
JOB_IDS = ("a", "b", "c")
MOST_HELD = 2
KEPT_MS = 60_000
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
    """One claim: of which job, and when it was held, in ns of the clock that processes share."""

    job_id: str
    epoch: int
    nonce: str
    since: int
    until: int


class Told(msgspec.Struct):
    """What a process has to tell: what it held, what it did, and what was wrong."""

    holds: list[Hold]
    did: dict[str, int]
    problems: list[str]


class Held(NamedTuple):
    """A claim that is not given up yet."""

    job_id: str
    claim: Claim
    since: int


class Hand:
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
        self._storage = storage
        self._name = name
        self._random = random.Random(seed)
        self._lives = 0
        self._numbers: Counter[str] = Counter()
        self._held: list[Held] = []

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
            self._operate: 5,
        }
        for verb in self._random.choices(list(verbs), weights=list(verbs.values()), k=steps):
            await verb()
        while self._held:
            await self._settle()

    @property
    def _incarnation(self) -> str:
        return f"{self._name}.{self._lives}"

    def _call(self, what: str) -> CallId:
        self._numbers[what] += 1
        return CallId(what, self._numbers[what])

    async def _register(self) -> None:
        self._lives += 1
        info = IncarnationInfo(
            incarnation=self._incarnation,
            name=self._name,
            host="here",
            pid=0,
            version="0",
            concurrency=1,
            lease_ms=KEPT_MS,
            registered_ms=0,
        )
        await self._storage.register(QUEUE, info)

    def _update(self) -> Update | None:
        if self._random.random() < 0.2:
            return None
        return Update(
            self._random.random() < 0.8,
            self._random.choice(list(UpdateRunAt)),
            self._random.random() < 0.5,
            self._random.random() < 0.2,
        )

    async def _enqueue(self) -> None:
        """Enqueue for a past time, for now and for a future one."""
        now_ms = time.time_ns() // 1_000_000
        jobs = [
            JobRequest(
                id=job_id,
                queue=QUEUE,
                task="send",
                payload=b"." * self._random.choice((2, 300)),
                priority=self._random.choice((1, 5, 9)),
                delay_ms=self._random.choice((0, 0, 1, 3)),
                run_at_ms=self._random.choice((0, 0, now_ms - KEPT_MS, now_ms + 2)),
                keep_ms=self._random.choice((0, KEPT_MS)),
                max_stalls=self._random.choice((1, 2, 9)),
                update=self._update(),
            )
            for job_id in self._random.choices(JOB_IDS, k=self._random.randint(1, 3))
        ]
        for outcome in await self._storage.enqueue(QUEUE, jobs, call=self._call(self._name)):
            self.did[f"enqueue: {outcome}"] += 1

    async def _claim(self) -> None:
        if len(self._held) >= MOST_HELD:
            return
        call = self._call(f"{self._incarnation}")
        nonce = f"{self._incarnation}/{call.number}"
        reply = await self._storage.claim(QUEUE, call=call, nonce=nonce, slots={"default": 1})
        now = time.monotonic_ns()
        self._held += [Held(job.id, job.claim, now) for job in reply.jobs]
        self.did["claim"] += len(reply.jobs)

    def _give_up(self, given: Sequence[Held]) -> None:
        """Write down that claims are given up, before anybody can know of it."""
        now = time.monotonic_ns()
        for held in given:
            self._held.remove(held)
            claim = held.claim
            self.holds.append(Hold(held.job_id, claim.epoch, claim.nonce, held.since, now))

    async def _settle(self) -> None:
        if not self._held:
            return
        held, outcome = self._random.choice(self._held), self._random.choice(OUTCOMES)
        self._give_up([held])
        call = CallId(self._incarnation, self._call(f"{self._incarnation} settles").number)
        settlement = Settlement(held.job_id, held.claim, 1, outcome)
        if await self._storage.settle(QUEUE, [settlement], call=call) != [True]:
            self.problems.append(f"{outcome} of {held} was not taken")
        self.did[f"settle: {type(outcome).__name__}"] += 1
        if isinstance(outcome, Failed) and self._random.random() < 0.5:
            self.did["redrive"] += await self._storage.redrive(QUEUE, [held.job_id])

    async def _put_back(self) -> None:
        given = self._held[:]
        self._give_up(given)
        jobs = [(held.job_id, held.claim) for held in given]
        await self._storage.put_back(QUEUE, self._incarnation, jobs)
        self.did["put back"] += len(given)

    async def _die(self) -> None:
        """Have all that it holds taken back, as of a dead worker or one that retires."""
        given, name = self._held[:], self._incarnation
        self._give_up(given)
        if self._random.random() < 0.5:
            await self._storage.reap(QUEUE, name, seen=0, error=ERROR)
            self.did["reap"] += len(given)
        else:
            await self._storage.retire(QUEUE, name)
            self.did["retire"] += len(given)
        await self._register()

    async def _cancel(self) -> None:
        only_next = self._random.random() < 0.4
        outcomes = await self._storage.cancel(
            QUEUE, [self._random.choice(JOB_IDS)], only_next=only_next
        )
        self.did[f"cancel{' the next' * only_next}: {outcomes[0]}"] += 1

    async def _operate(self) -> None:
        job_ids, state = [self._random.choice(JOB_IDS)], self._random.choice(list(JobState))
        self.did["purge"] += await self._storage.purge(QUEUE, state, job_ids)


async def drain(storage: Storage) -> dict[str, ClaimedJob]:
    """Complete all that is ready by now; return the last job of each id."""
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
    last: dict[str, ClaimedJob] = {}
    number = 0
    while True:
        number += 1
        call = CallId("last", number)
        reply: Any = await storage.claim(
            QUEUE, call=call, nonce=f"last/{number}", slots={"default": 10}
        )
        if not reply.jobs and reply.next_due_ms is None:
            return last
        last.update((job.id, job) for job in reply.jobs)
        done = [Settlement(job.id, job.claim, 1, OUTCOMES[0]) for job in reply.jobs]
        await storage.settle(QUEUE, done, call=call)


def overlaps(holds: Sequence[Hold]) -> list[str]:
    """Return what two hands held at a time, and what was claimed twice by one claim."""
    found = []
    last: dict[str, Hold] = {}
    for hold in sorted(holds, key=lambda hold: hold.since):
        before = last.get(hold.job_id)
        if before is not None and before.until > hold.since:
            found.append(f"{before} and {hold} are two active jobs of an id")
        last[hold.job_id] = hold
    claims = Counter((hold.job_id, hold.epoch, hold.nonce) for hold in holds)
    return [*found, *(f"{claim} was answered {n} times" for claim, n in claims.items() if n > 1)]

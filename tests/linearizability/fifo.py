"""The order of jobs, which no check of one job alone can see: its rule, and a client that tells."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from headrace.job import CancelOutcome
from headrace.request import JobRequest
from tests.linearizability.caller import UNTIL_ANSWERED, Answer, Caller

TIERS = (3, 5)


class Moment(msgspec.Struct, frozen=True, tag=True):
    """When a call brought one job into the queue, or out of it.

    Attributes:
        job_id: an id that waits once, or was cancelled and waits anew: then only that counts.
        tier: of the job.
        is_entry: whether the call was an enqueue; else a claim took the job.
        call: the call's name.
        position: of the job among those of the call; None for a claim that was repeated after it
            may have been executed, whose answer need not tell the order.
        invoked: when the call was sent, in ns.
        returned: when its answer came.
    """

    job_id: str
    tier: int
    is_entry: bool
    call: str
    position: int | None
    invoked: int
    returned: int

    def is_before(self, other: Moment) -> bool:
        """Whether this surely came first: its call had returned, or it stood first in the same."""
        if self.call != other.call:
            return self.returned < other.invoked
        if self.position is None or other.position is None:
            return False
        return self.position < other.position


def problems(moments: Iterable[Moment]) -> list[str]:
    """Return which jobs were lost, came twice or overtook one of their tier."""
    entered: dict[str, Moment] = {}
    taken: dict[str, Moment] = {}
    found = []
    for moment in moments:
        seen = entered if moment.is_entry else taken
        if moment.job_id in seen:
            found.append(f"{moment.job_id} was {'enqueued' if moment.is_entry else 'taken'} twice")
        seen[moment.job_id] = moment
    found += [f"{job_id} was never taken" for job_id in entered.keys() - taken.keys()]
    found += [f"{job_id} was never enqueued" for job_id in taken.keys() - entered.keys()]
    both = entered.keys() & taken.keys()
    found += [
        f"{late} overtook {early}"
        for early in both
        for late in both
        if entered[early].tier == entered[late].tier
        and entered[early].is_before(entered[late])
        and taken[late].is_before(taken[early])
    ]
    return sorted(found)


class FifoClient:
    """Enqueues jobs under ids of its own and claims what is there, each call until it is answered.

    So every job's way is known, and none is taken unseen.

    Args:
        caller: who calls.
    """

    def __init__(self, caller: Caller) -> None:
        self.lines: list[Moment] = []
        self._caller = caller
        self._storage = caller.storage
        self._queue = caller.queue
        self._random = caller.random

    async def run(self, calls: int) -> None:
        """Register, then make that many calls."""
        await self._caller.register()
        for number in range(calls):
            action = self._random.choices(("enqueue", "claim", "move"), weights=(4, 5, 2))
            if action == ["enqueue"]:
                await self._enqueue([f"{self._caller.name}-{number}-{i}" for i in range(3)])
            elif action == ["claim"]:
                await self._claim(self._random.randint(1, 2))
            else:
                await self._move()

    async def look(self) -> None:
        """Claim all that is left."""
        await self._caller.register()
        while await self._claim(10):
            pass

    async def _enqueue(self, job_ids: list[str]) -> None:
        jobs = [
            JobRequest(
                id=job_id,
                queue=self._queue,
                task="send",
                payload=str(tier).encode(),
                priority=tier,
            )
            for job_id, tier in zip(job_ids, self._random.choices(TIERS, k=3), strict=False)
        ]
        answer = await self._caller.ask_numbered(
            "enqueue",
            lambda call: self._storage.enqueue(self._queue, jobs, call=call),
            repetitions=UNTIL_ANSWERED,
        )
        self._note(answer, [(job.id, job.priority) for job in jobs], is_entry=True)

    async def _move(self) -> None:
        """Cancel an own job that may wait still, and enqueue it anew: now it is the last."""
        own = [moment.job_id for moment in self.lines if moment.is_entry]
        if not own:
            return
        job_id = self._random.choice(own)
        answer = await self._caller.ask(
            "cancel",
            lambda: self._storage.cancel(self._queue, [job_id]),
            repetitions=UNTIL_ANSWERED,
        )
        if answer.reply == [CancelOutcome.CANCELLED]:
            self.lines = [moment for moment in self.lines if moment.job_id != job_id]
            await self._enqueue([job_id])

    async def _claim(self, limit: int) -> bool:
        """Claim; whether jobs came."""
        nonce = f"{self._caller.incarnation}/{self._random.getrandbits(64):x}"
        claim, slots = self._storage.claim, {"default": limit}
        answer = await self._caller.ask_numbered(
            "claim",
            lambda call: claim(self._queue, call=call, nonce=nonce, slots=slots),
            repetitions=UNTIL_ANSWERED,
        )
        jobs = answer.reply.jobs if answer.reply else []
        self._note(answer, [(job.id, int(job.payload)) for job in jobs], is_entry=False)
        return bool(jobs)

    def _note(self, answer: Answer[Any], rows: list[tuple[str, int]], *, is_entry: bool) -> None:
        assert answer.returned is not None
        has_order = is_entry or not answer.may_have_run
        self.lines += [
            Moment(
                job_id,
                tier,
                is_entry,
                f"{self._caller.name} {answer.invoked}",
                position if has_order else None,
                answer.invoked,
                answer.returned,
            )
            for position, (job_id, tier) in enumerate(rows)
        ]

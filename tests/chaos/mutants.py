"""Storages that are wrong in one way each, which the verdict of a run must notice.

They stand between a worker or producer and its storage, so that they are wrong on any. One is of
Lua, since what it leaves out is there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, cast

import msgspec

from headrace.job import CancelOutcome, ErrorInfo, JobState, Verdict
from headrace.outcome import Completed, Failed
from headrace.request import JobRequest
from headrace.storage import Storage, open_storage
from headrace.storage.exports import ExportPage
from headrace.storage.incarnations import Beat, ClaimReply, SlotsAsked
from headrace.storage.limits import DEFAULT_WRITE_KEEP_MS, EXPORT_PAGE_LIMIT
from headrace.storage.redis.library import PREFIX, Library, library
from headrace.storage.redis.storage import RedisStorage
from headrace.storage.values import CallId, EventPage, Settlement, StageInfo


class Mutant:
    """Passes every call on; each subclass does one thing wrong.

    Args:
        inner: the storage that is right.
    """

    def __init__(self, inner: Storage) -> None:
        self._inner = inner
        self._calls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _every(self, nth: int) -> bool:
        self._calls += 1
        return self._calls % nth == 0


class IgnoresCancel(Mutant):
    """Says that a job was cancelled, and does nothing."""

    async def cancel(
        self,
        queue: str,
        job_ids: Sequence[str],
        *,
        only_next: bool = False,
        states: Collection[JobState] = (),
    ) -> list[CancelOutcome]:
        """Answer as if it had."""
        return [CancelOutcome.CANCELLED for _ in job_ids]


class CountsNoStall(Mutant):
    """Takes the jobs of the dead back free of charge."""

    async def reap(
        self, queue: str, incarnation: str, *, seen: int, error: ErrorInfo
    ) -> int | None:
        """Retire it."""
        return await self._inner.retire(queue, incarnation)


class CountsNoAttempt(Mutant):
    """Does not count the attempt that makes a dead letter."""

    async def settle(
        self, queue: str, settlements: Sequence[Settlement], *, call: CallId
    ) -> list[bool] | None:
        """Settle without it."""
        patched = [
            msgspec.structs.replace(
                one, outcome=msgspec.structs.replace(one.outcome, is_attempt=False)
            )
            if isinstance(one.outcome, Failed)
            else one
            for one in settlements
        ]
        return await self._inner.settle(queue, patched, call=call)


class MixesResults(Mutant):
    """Gives each job of a batch its neighbour's result."""

    async def settle(
        self, queue: str, settlements: Sequence[Settlement], *, call: CallId
    ) -> list[bool] | None:
        """Settle with the outcomes of those that completed turned round."""
        done = [one.outcome for one in settlements if isinstance(one.outcome, Completed)]
        patched = [
            msgspec.structs.replace(one, outcome=done.pop())
            if isinstance(one.outcome, Completed)
            else one
            for one in settlements
        ]
        return await self._inner.settle(queue, patched, call=call)


class LosesClaims(Mutant):
    """Takes jobs out of the queue that nobody then has, as a pop does whose answer is lost."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self._lost: set[str] = set()

    async def claim(self, queue: str, *, call: CallId, nonce: str, slots: SlotsAsked) -> ClaimReply:
        """Forget what one claim in twenty brought."""
        reply = await self._inner.claim(queue, call=call, nonce=nonce, slots=slots)
        if reply.jobs and self._every(20):
            self._lost.update(job.id for job in reply.jobs)
            return msgspec.structs.replace(reply, jobs=[])
        return reply

    async def held(self, queue: str, incarnation: str) -> list[Any]:
        """Leave them out, so that nobody hands them back."""
        held = await self._inner.held(queue, incarnation)
        return [job for job in held if job[0] not in self._lost]


class EnqueuesAgain(Mutant):
    """Does not know a repeated call."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self._first: list[JobRequest] = []

    async def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[Verdict]:
        """Repeat the first call with every third, under another name and as if its ids were new."""
        self._first = self._first or [msgspec.structs.replace(j, is_new_id=True) for j in jobs]
        if self._every(3) and self._first[0].queue == queue:
            other = CallId(call.client[::-1], call.number)
            await self._inner.enqueue(queue, self._first, call=other)
        return await self._inner.enqueue(queue, jobs, call=call)


class CondemnsTheLiving(Mutant):
    """Does not see that a beat has moved, and does not compare it when it reaps."""

    async def beats(self, queue: str) -> dict[str, Beat]:
        """Return beats that stand still."""
        found = await self._inner.beats(queue)
        return {name: msgspec.structs.replace(beat, count=0) for name, beat in found.items()}

    async def reap(
        self, queue: str, incarnation: str, *, seen: int, error: ErrorInfo
    ) -> int | None:
        """Reap, whatever the beat."""
        beat = (await self._inner.beats(queue)).get(incarnation)
        now = seen if beat is None else beat.count
        return await self._inner.reap(queue, incarnation, seen=now, error=error)


class StartsEarly(Mutant):
    """Starts delayed jobs before their time."""

    async def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[Verdict]:
        """Take half of each delay off."""
        early = [msgspec.structs.replace(job, delay_ms=job.delay_ms // 2) for job in jobs]
        return await self._inner.enqueue(queue, early, call=call)


class StagesTooFew(Mutant):
    """Loses the last job of each call that stages some."""

    async def stage(
        self,
        queue: str,
        write_id: str,
        token: str,
        jobs: Sequence[JobRequest],
        *,
        before: int,
        ttl_ms: int,
    ) -> int:
        """Stage the others."""
        return await self._inner.stage(
            queue, write_id, token, jobs[:-1], before=before, ttl_ms=ttl_ms
        )


class CommitsTheDiscarded(Mutant):
    """Commits what was staged when it is told to drop it."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self._staged: dict[str, StageInfo] = {}

    async def stage(
        self,
        queue: str,
        write_id: str,
        token: str,
        jobs: Sequence[JobRequest],
        *,
        before: int,
        ttl_ms: int,
    ) -> int:
        """Stage, and note how much."""
        length = await self._inner.stage(queue, write_id, token, jobs, before=before, ttl_ms=ttl_ms)
        earlier = self._staged.get(token, StageInfo(token, 0, 0))
        self._staged[token] = StageInfo(token, length, earlier.jobs + len(jobs))
        return length

    async def discard(self, queue: str, write_id: str, tokens: Sequence[str]) -> int:
        """Commit instead."""
        stages = [self._staged[token] for token in tokens if token in self._staged]
        await self._inner.commit(queue, write_id, stages, keep_ms=DEFAULT_WRITE_KEEP_MS)
        return len(stages)


class ExportsTooFew(Mutant):
    """Passes over the first job of each longer page of an export."""

    async def export(
        self, queue: str, state: JobState, *, cursor: str = "", limit: int = EXPORT_PAGE_LIMIT
    ) -> ExportPage:
        """Return the others."""
        page = await self._inner.export(queue, state, cursor=cursor, limit=limit)
        return msgspec.structs.replace(page, records=page.records[len(page.records) > 5 :])


class TellsTooFew(Mutant):
    """Passes over the first event of each longer page."""

    async def events(self, queue: str, *, after: str = "0", limit: int = 100) -> EventPage:
        """Return the others."""
        page = await self._inner.events(queue, after=after, limit=limit)
        return msgspec.structs.replace(page, events=page.events[len(page.events) > 5 :])


IGNORED_CLAIM = {
    "if not last then\n    return 'unknown'": "last = last or '0'\n  if false then",
    "elseif not is_owned then\n    return 'stale'": (
        "elseif not is_owned then\n    job.epoch, job.nonce = record.claim_parts(args[at + 1])"
    ),
}


@cache
def library_that_ignores_claims() -> Library:
    """Return the library whose settle takes any claim as if it were the last."""
    right = library()
    source = right.source
    for old, new in IGNORED_CLAIM.items():
        if source.count(old) != 1:
            raise RuntimeError(f"the library has changed: {old!r} is not there once")
        source = source.replace(old, new)
    name = PREFIX + hashlib.sha256(source.encode()).hexdigest()[:8]
    return Library(name=name, source=source.replace(right.name, name))


MUTANTS: dict[str, type[Mutant]] = {
    mutant.__name__: mutant
    for mutant in (
        IgnoresCancel,
        CountsNoStall,
        CountsNoAttempt,
        MixesResults,
        LosesClaims,
        EnqueuesAgain,
        CondemnsTheLiving,
        StartsEarly,
        StagesTooFew,
        CommitsTheDiscarded,
        ExportsTooFew,
        TellsTooFew,
    )
}


IGNORES_CLAIMS = "IgnoresClaims"
"""The one of Lua: its settle takes any claim, and its events name whose that was."""


def open_mutant(name: str, url: str, *, tenant: str) -> Storage:
    """Return a storage that is wrong in the named way."""
    if name == IGNORES_CLAIMS:
        return RedisStorage(url, source=library_that_ignores_claims()).for_tenant(tenant)
    return cast(Storage, MUTANTS[name](open_storage(url, tenant=tenant)))

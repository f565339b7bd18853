"""Embedded storages that change jobs in a way that is wrong, which the machine must find out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

import msgspec

from headrace.job import CancelOutcome, Claim, ErrorInfo, JobRecord, JobState, Verdict
from headrace.request import JobRequest
from headrace.storage.incarnations import ClaimReply, SlotsAsked
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.storage.values import CallId, Settlement
from headrace.update import Update, UpdateRunAt


class ChangesRequests(SqliteStorage, ABC):
    """Takes something else for what an update asks."""

    @abstractmethod
    def changed(self, job: JobRequest, update: Update) -> JobRequest:
        """Return what it takes a request for."""

    async def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[Verdict]:
        changed = [job if job.update is None else self.changed(job, job.update) for job in jobs]
        return await super().enqueue(queue, changed, call=call)


class UpdatesNothing(ChangesRequests):
    """Takes an update for any other enqueue."""

    def changed(self, job: JobRequest, update: Update) -> JobRequest:
        return msgspec.structs.replace(job, update=None)


class AlwaysTakesTheTime(ChangesRequests):
    """Does not compare times."""

    def changed(self, job: JobRequest, update: Update) -> JobRequest:
        if update.run_at is UpdateRunAt.NEVER:
            return job
        new = msgspec.structs.replace(update, run_at=UpdateRunAt.ALWAYS)
        return msgspec.structs.replace(job, update=new)


class ComparesTimesTheOtherWay(ChangesRequests):
    """Takes an earlier time for a later one."""

    def changed(self, job: JobRequest, update: Update) -> JobRequest:
        others = {
            UpdateRunAt.IF_LATER: UpdateRunAt.IF_EARLIER,
            UpdateRunAt.IF_EARLIER: UpdateRunAt.IF_LATER,
        }
        new = msgspec.structs.replace(update, run_at=others.get(update.run_at, update.run_at))
        return msgspec.structs.replace(job, update=new)


class ChangesRetriesWithData(ChangesRequests):
    """Does not tell data and retries apart."""

    def changed(self, job: JobRequest, update: Update) -> JobRequest:
        new = msgspec.structs.replace(update, retry=update.retry or update.data)
        return msgspec.structs.replace(job, update=new)


class KeepsCounts(ChangesRequests):
    """Never begins to count anew."""

    def changed(self, job: JobRequest, update: Update) -> JobRequest:
        return msgspec.structs.replace(
            job, update=msgspec.structs.replace(update, reset_counts=False)
        )


class ForgetsWhoUpdates(ChangesRequests):
    """Tells those of no end who have asked for an update."""

    def changed(self, job: JobRequest, update: Update) -> JobRequest:
        return msgspec.structs.replace(job, channel="")


class StartsTheNextBesideTheActiveOne(SqliteStorage):
    """Lets a successor in as soon as somebody claims."""

    async def claim(self, queue: str, *, call: CallId, nonce: str, slots: SlotsAsked) -> ClaimReply:
        sql = """
UPDATE jobs SET is_next = 2, state = 'queued', seq = key WHERE is_next = 1
"""
        await self._do("claim", lambda step: step.db.execute(sql).rowcount)
        return await super().claim(queue, call=call, nonce=nonce, slots=slots)


class LosesTheNext(SqliteStorage):
    """Drops the successors of those jobs whose attempts end."""

    async def settle(
        self, queue: str, settlements: Sequence[Settlement], *, call: CallId
    ) -> list[bool] | None:
        await super().cancel(queue, [one.job_id for one in settlements], only_next=True)
        return await super().settle(queue, settlements, call=call)


class LosesTheNextOfTheDead(SqliteStorage):
    """Drops the successors of jobs that are taken back."""

    async def reap(
        self, queue: str, incarnation: str, *, seen: int, error: ErrorInfo
    ) -> int | None:
        held = await self.held(queue, incarnation)
        await super().cancel(queue, [job_id for job_id, _ in held], only_next=True)
        return await super().reap(queue, incarnation, seen=seen, error=error)


class LosesTheNextOfWhatIsPutBack(SqliteStorage):
    async def put_back(
        self, queue: str, incarnation: str, jobs: Sequence[tuple[str, Claim]]
    ) -> None:
        await super().cancel(queue, [job_id for job_id, _ in jobs], only_next=True)
        await super().put_back(queue, incarnation, jobs)


class CancelsBoth(SqliteStorage):
    """Asks the active one to stop, too, where its successor alone is to go."""

    async def cancel(
        self,
        queue: str,
        job_ids: Sequence[str],
        *,
        only_next: bool = False,
        states: Collection[JobState] = (),
    ) -> list[CancelOutcome]:
        outcomes = await super().cancel(queue, job_ids, only_next=only_next, states=states)
        gone = CancelOutcome.CANCELLED
        ids = [i for i, outcome in zip(job_ids, outcomes, strict=True) if outcome is gone]
        if only_next and ids:
            await super().cancel(queue, ids)
        return outcomes


class HidesTheNext(SqliteStorage):
    async def get(self, queue: str, job_id: str) -> JobRecord | None:
        record = await super().get(queue, job_id)
        return None if record is None else msgspec.structs.replace(record, has_next=False)


UPDATE_MUTANTS = (
    UpdatesNothing,
    AlwaysTakesTheTime,
    ComparesTimesTheOtherWay,
    ChangesRetriesWithData,
    KeepsCounts,
    ForgetsWhoUpdates,
    StartsTheNextBesideTheActiveOne,
    LosesTheNext,
    LosesTheNextOfTheDead,
    LosesTheNextOfWhatIsPutBack,
    CancelsBoth,
    HidesTheNext,
)
"""Each is wrong in one way."""

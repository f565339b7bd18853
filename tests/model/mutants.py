"""Embedded storages that are wrong in one way each, which the machine must find out."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from typing import Unpack

import msgspec

from headrace.job import CancelOutcome, Claim, ErrorInfo, JobState, Verdict
from headrace.request import JobRequest
from headrace.storage.event_pages import EventLines, EventPlace
from headrace.storage.exports import ExportPage
from headrace.storage.incarnations import ClaimReply, SlotsAsked
from headrace.storage.limits import EXPORT_PAGE_LIMIT
from headrace.storage.queues import SettingChanges
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.storage.values import CallId, End, EventPage, Report, Settlement


class IgnoresTheNonce(SqliteStorage):
    async def settle(
        self, queue: str, settlements: Sequence[Settlement], *, call: CallId
    ) -> list[bool] | None:
        held = dict(await self.held(queue, call.client))
        patched = []
        for settlement in settlements:
            epoch = settlement.claim.epoch
            claim = held.get(settlement.job_id, settlement.claim)
            is_same = claim.epoch == epoch
            patched.append(
                msgspec.structs.replace(settlement, claim=claim) if is_same else settlement
            )
        return await super().settle(queue, patched, call=call)


class SettlesLate(SqliteStorage):
    """Says that an outcome was written although its claim is another's by now."""

    async def settle(
        self, queue: str, settlements: Sequence[Settlement], *, call: CallId
    ) -> list[bool] | None:
        verdicts = await super().settle(queue, settlements, call=call)
        return None if verdicts is None else [True for _ in verdicts]


class ReportsForAnybody(SqliteStorage):
    """Takes what a claim says that is another's by now."""

    async def report(self, queue: str, reports: Sequence[Report]) -> list[bool]:
        held = {}
        for worker in await self.workers(queue):
            held.update(dict(await self.held(queue, worker.incarnation)))
        current = [
            msgspec.structs.replace(said, claim=held.get(said.job_id, said.claim))
            for said in reports
        ]
        return await super().report(queue, current)


class DropsACancel(SqliteStorage):
    """Does not ask an active job to stop."""

    async def cancel(
        self,
        queue: str,
        job_ids: Sequence[str],
        *,
        only_next: bool = False,
        states: Collection[JobState] = (),
    ) -> list[CancelOutcome]:
        records = [await self.get(queue, job_id) for job_id in job_ids]
        active = {r.id for r in records if r is not None and r.state is JobState.ACTIVE}
        others = [job_id for job_id in job_ids if job_id not in active]
        known = dict(
            zip(
                others,
                await super().cancel(queue, others, only_next=only_next, states=states),
                strict=True,
            )
        )
        return [known.get(job_id, CancelOutcome.REQUESTED) for job_id in job_ids]


class CountsNoStall(SqliteStorage):
    async def reap(
        self, queue: str, incarnation: str, *, seen: int, error: ErrorInfo
    ) -> int | None:
        left = await super().reap(queue, incarnation, seen=seen, error=error)
        sql = "UPDATE jobs SET stalls = 0 WHERE state = 'queued'"
        await self._do("reap", lambda step: step.db.execute(sql).rowcount)
        return left


class ReapsTheLiving(SqliteStorage):
    """Does not look whether the beat has moved."""

    async def reap(
        self, queue: str, incarnation: str, *, seen: int, error: ErrorInfo
    ) -> int | None:
        known = (await self.beats(queue)).get(incarnation)
        now = seen if known is None else known.count
        return await super().reap(queue, incarnation, seen=now, error=error)


class EnqueuesAgain(SqliteStorage):
    """Does not know a repeated call."""

    async def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[Verdict]:
        anew = [msgspec.structs.replace(job, is_new_id=False) for job in jobs]
        return await super().enqueue(queue, anew, call=CallId(secrets.token_hex(8), call.number))


class ReplacesWhatStays(SqliteStorage):
    """Has every ended record make room."""

    async def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[Verdict]:
        replacing = [msgspec.structs.replace(job, replaces_ended=True) for job in jobs]
        return await super().enqueue(queue, replacing, call=call)


class ForgetsTheOrder(SqliteStorage):
    async def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[Verdict]:
        return (await super().enqueue(queue, jobs[::-1], call=call))[::-1]


class StartsEarly(SqliteStorage):
    """Starts a delayed job a millisecond before its time."""

    async def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[Verdict]:
        early = [msgspec.structs.replace(j, delay_ms=max(0, j.delay_ms - 1)) for j in jobs]
        return await super().enqueue(queue, early, call=call)


class LosesTheToken(SqliteStorage):
    """Wakes nobody when a job comes."""

    async def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[Verdict]:
        outcomes = await super().enqueue(queue, jobs, call=call)
        await self.open_waiter(queue, "thief", "default").wait(0)
        return outcomes


class ClaimsAnew(SqliteStorage):
    """Brings nothing when a claim is repeated: what it claimed is lost until its worker dies."""

    async def claim(self, queue: str, *, call: CallId, nonce: str, slots: SlotsAsked) -> ClaimReply:
        before = {claim.nonce for _, claim in await self.held(queue, call.client)}
        reply = await super().claim(queue, call=call, nonce=nonce, slots=slots)
        return msgspec.structs.replace(reply, jobs=[]) if nonce in before else reply


class PutsBackBackwards(SqliteStorage):
    async def put_back(
        self, queue: str, incarnation: str, jobs: Sequence[tuple[str, Claim]]
    ) -> None:
        await super().put_back(queue, incarnation, jobs[::-1])


class ForgetsWaiters(SqliteStorage):
    async def watch(self, queue: str, job_ids: Sequence[str], *, channel: str) -> list[End]:
        return await super().watch(queue, job_ids, channel="")


class TellsNoReason(SqliteStorage):
    """Leaves out why a job has ended as it did."""

    async def outcomes(self, queue: str, job_ids: Sequence[str]) -> list[End]:
        ends = await super().outcomes(queue, job_ids)
        return [msgspec.structs.replace(end, reason="") for end in ends]


class ExportsTooSoon(SqliteStorage):
    """Exports what has ended in this very millisecond."""

    async def export(
        self, queue: str, state: JobState, *, cursor: str = "", limit: int = EXPORT_PAGE_LIMIT
    ) -> ExportPage:
        clock = self.clock
        self.clock = lambda: clock() + 1
        try:
            return await super().export(queue, state, cursor=cursor, limit=limit)
        finally:
            self.clock = clock


class SkipsTheRestOfAMillisecond(SqliteStorage):
    """Goes on behind all that ended when the last job of a page did."""

    async def export(
        self, queue: str, state: JobState, *, cursor: str = "", limit: int = EXPORT_PAGE_LIMIT
    ) -> ExportPage:
        behind = f"{cursor.rpartition(':')[0]}:\U0010ffff" if cursor else ""
        return await super().export(queue, state, cursor=behind, limit=limit)


class PausesEverybody(SqliteStorage):
    """Pauses the queue of every tenant."""

    async def pause(self, queue: str) -> None:
        sql = "UPDATE queues SET is_paused = 1 WHERE name = ?"
        await self._do("pause", lambda step: step.db.execute(sql, (queue,)).rowcount)


class KeepsEverything(SqliteStorage):
    """Does not bound the history."""

    async def configure(self, queue: str, **changes: Unpack[SettingChanges]) -> None:
        changes["history"] = 100_000
        await super().configure(queue, **changes)


class LetsReadersGoBack(SqliteStorage):
    """Takes every word of a reader for its place."""

    async def acknowledge(
        self, queue: str, reader: str, stream_id: str, *, number: int = 0
    ) -> None:
        await self.forget_reader(queue, reader)
        await super().acknowledge(queue, reader, stream_id, number=number)


class ForgetsWhenItIsDue(SqliteStorage):
    """Has events that don't tell for when a job was put off."""

    async def events(self, queue: str, *, after: str = "0", limit: int = 100) -> EventPage:
        page = await super().events(queue, after=after, limit=limit)
        events = [msgspec.structs.replace(event, due_ms=0) for event in page.events]
        return msgspec.structs.replace(page, events=events)


class ReadsAnEntryAgain(SqliteStorage):
    """Begins a page of lines with the entry that was seen last."""

    async def event_lines(
        self, queue: str, *, after: str = "0", until: str = "", limit: int = 100
    ) -> list[EventLines]:
        at_ms, _, entry = after.partition("-")
        before = f"{at_ms}-{max(0, int(entry or 0) - 1)}"
        return await super().event_lines(queue, after=before, until=until, limit=limit)


class FindsAPlaceTooEarly(SqliteStorage):
    """Finds the last entry that is earlier than an instant, and not that of it."""

    async def event_place(self, queue: str, at_ms: int) -> EventPlace | None:
        return await super().event_place(queue, at_ms - 1)


MUTANTS = (
    IgnoresTheNonce,
    SettlesLate,
    ReportsForAnybody,
    DropsACancel,
    CountsNoStall,
    ReapsTheLiving,
    EnqueuesAgain,
    ReplacesWhatStays,
    ForgetsTheOrder,
    StartsEarly,
    LosesTheToken,
    ClaimsAnew,
    PutsBackBackwards,
    ForgetsWaiters,
    TellsNoReason,
    ExportsTooSoon,
    SkipsTheRestOfAMillisecond,
    PausesEverybody,
    KeepsEverything,
    LetsReadersGoBack,
    ForgetsWhenItIsDue,
    ReadsAnEntryAgain,
    FindsAPlaceTooEarly,
)
